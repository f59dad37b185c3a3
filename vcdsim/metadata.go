package vcdsim

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func metadataRoutes(add addRoute) {
	for _, base := range []string{"/api/vApp/vapp-{vapp}", "/api/vApp/vm-{vm}", "/api/disk/{disk}"} {
		add("GET", base+"/metadata", (*request).getMetadata, latencyLegacy)
		add("POST", base+"/metadata", (*request).mergeMetadata, latencyLegacy)
		add("GET", base+"/metadata/{key}", (*request).getMetadataValue, latencyLegacy)
		add("PUT", base+"/metadata/{key}", (*request).putMetadataValue, latencyLegacy)
		add("DELETE", base+"/metadata/{key}", (*request).deleteMetadataValue, latencyLegacy)
	}
}

// A tagged is an entity with metadata.
type tagged struct {
	entity   Entity
	metadata *map[string]Metadata
}

func (r *request) tagged() (tagged, error) {
	if id := r.vars["vapp"]; id != "" {
		v, err := r.vappByID(id)
		if err != nil {
			return tagged{}, err
		}
		return tagged{v.entity(), &v.Metadata}, nil
	}
	if id := r.vars["vm"]; id != "" {
		vm, err := r.vmByID(id)
		if err != nil {
			return tagged{}, err
		}
		return tagged{vm.entity(), &vm.Metadata}, nil
	}
	d, err := r.diskByID(r.vars["disk"])
	if err != nil {
		return tagged{}, err
	}
	return tagged{d.entity(), &d.Metadata}, nil
}

const xsiType = "xsi:type"

func typedValue(m Metadata) *xmltree.Node {
	return xmltree.New("TypedValue", xmltree.A("xmlns:xsi", xsi), xmltree.A(xsiType, m.Type), xmltree.T("Value", m.Value))
}

// metadataNode writes metadata as an element of any name.
func metadataNode(m map[string]Metadata, element string, attrs ...xmltree.Attr) *xmltree.Node {
	n := xmltree.New(element, attrs)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		n.Add(xmltree.New("MetadataEntry", xmltree.A("type", "application/vnd.vmware.vcloud.metadata.value+xml"),
			xmltree.T("Key", k), typedValue(m[k])))
	}
	return n
}

func (r *request) getMetadata() (*response, error) {
	e, err := r.tagged()
	if err != nil {
		return nil, err
	}
	attrs := append(namespaces(), xmltree.A("href", r.href(e.entity.Kind, e.entity.ID)+"/metadata"), xmltree.A("type", mime("metadata")))
	return xmlOK(metadataNode(*e.metadata, "Metadata", attrs...)), nil
}

func (r *request) getMetadataValue() (*response, error) {
	e, err := r.tagged()
	if err != nil {
		return nil, err
	}
	m, ok := (*e.metadata)[r.vars["key"]]
	if !ok {
		return nil, refuse(http.StatusForbidden, codeForbidden, "The metadata entry %q does not exist.", r.vars["key"])
	}
	return xmlOK(xmltree.New("MetadataValue", namespaces(), xmltree.A("href", r.href(e.entity.Kind, e.entity.ID)+"/metadata/"+r.vars["key"]),
		xmltree.A("type", "application/vnd.vmware.vcloud.metadata.value+xml"), typedValue(m))), nil
}

func readTyped(n *xmltree.Node) (Metadata, bool) {
	v := n.At("TypedValue")
	if v == nil {
		return Metadata{}, false
	}
	t := v.Attr("type")
	if _, local, ok := strings.Cut(t, ":"); ok {
		t = local
	}
	if t == "" {
		t = "MetadataStringValue"
	}
	m := Metadata{Type: t, Value: v.Str("Value")}
	return m, m.valid()
}

// valid says whether the value is one of its type.
func (m Metadata) valid() bool {
	var err error
	switch m.Type {
	case "MetadataStringValue":
	case "MetadataNumberValue":
		_, err = strconv.ParseFloat(m.Value, 64)
	case "MetadataBooleanValue":
		_, err = strconv.ParseBool(m.Value)
	case "MetadataDateTimeValue":
		_, err = time.Parse(time.RFC3339Nano, m.Value)
	default:
		return false
	}
	return err == nil
}

func (r *request) mergeMetadata() (*response, error) {
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	set := map[string]Metadata{}
	for _, entry := range tree.All("MetadataEntry") {
		m, ok := readTyped(entry)
		if !ok || entry.Str("Key") == "" {
			return nil, badRequest("A metadata entry needs a key and a value of its type.")
		}
		set[entry.Str("Key")] = m
	}
	return r.writeMetadata(Work{Op: opMetadata, Metadata: set})
}

func (r *request) putMetadataValue() (*response, error) {
	tree, err := r.tree()
	if err != nil {
		return nil, err
	}
	m, ok := readTyped(tree)
	if !ok {
		return nil, badRequest("The metadata value is not of its type.")
	}
	return r.writeMetadata(Work{Op: opMetadata, Metadata: map[string]Metadata{r.vars["key"]: m}})
}

func (r *request) deleteMetadataValue() (*response, error) {
	return r.writeMetadata(Work{Op: opMetadata, Forget: []string{r.vars["key"]}})
}

func (r *request) writeMetadata(w Work) (*response, error) {
	e, err := r.tagged()
	if err != nil {
		return nil, err
	}
	if err := r.sim.busyCheck(e.entity.ID); err != nil {
		return nil, err
	}
	switch e.entity.Kind {
	case "vapp":
		w.VApp = e.entity.ID
	case "vm":
		w.VM = e.entity.ID
	default:
		w.Disk = e.entity.ID
	}
	return r.accepted(r.sim.startTask(r, w, e.entity, []string{e.entity.ID})), nil
}

// commitMetadata is what the task does.
func (s *Simulator) commitMetadata(t *Task) error {
	var m *map[string]Metadata
	w := t.Work
	switch {
	case w.VApp != "" && s.store.vapps[w.VApp] != nil:
		m = &s.store.vapps[w.VApp].Metadata
	case w.VM != "" && s.store.vms[w.VM] != nil:
		m = &s.store.vms[w.VM].Metadata
	case w.Disk != "" && s.store.disks[w.Disk] != nil:
		m = &s.store.disks[w.Disk].Metadata
	default:
		return forbidden("METADATA_UPDATE", t.Owner.ID)
	}
	if *m == nil {
		*m = map[string]Metadata{}
	}
	maps.Copy(*m, w.Metadata)
	for _, k := range w.Forget {
		delete(*m, k)
	}
	return nil
}
