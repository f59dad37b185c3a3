// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// clusterWindow is how many errors and events of the cluster are kept.
const clusterWindow = 20

// VAppResource is the type of a vApp among the resources.
const VAppResource = "VApp"

// Errors of an entity that does not take the section of a cluster.
var (
	// ErrForeign means that the entity belongs to another cluster.
	ErrForeign = errors.New("the entity belongs to another cluster")
	// ErrVersion means that the version of the entity's type has another layout.
	ErrVersion = errors.New("the version of the entity's type is not supported: it must be 1.1.0 or later, " +
		"below 2.0.0")
)

// A Cluster is what section status.capvcd of an entity says about a cluster, and what the entity's metadata do.
type Cluster struct {
	UID       string // id of the cluster, by which it owns the entity
	Name      string
	Site      string
	Org       Named
	VDCs      []VDC
	Version   string // of the controller
	Phase     string // of the Cluster
	Ready     bool   // the control plane is
	Host      string // of the API server; empty: not known yet
	Port      int32
	Release   Release
	Upgraded  bool // all machines have the version
	Pods      []string
	Services  []string
	Pools     []NodePool
	VApps     []Resource
	Errors    []Entry // that stand now
	Events    []Entry
	ParentUID string // empty: left as it is

	Management *bool   // nil: left as it is
	Kubeconfig *string // nil: left as it is
}

// Named is an object of VCD.
type Named struct {
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// A VDC is where machines of a cluster are.
type VDC struct {
	Named

	Network string `json:"ovdcNetworkName,omitempty"`
}

// A Release is what a cluster runs.
type Release struct {
	Kubernetes string `json:"kubernetesVersion,omitempty"`
	TKG        string `json:"tkgVersion,omitempty"`
}

// A NodePool is the control plane, or machines of one MachineDeployment.
type NodePool struct {
	Name            string
	SizingPolicy    string
	PlacementPolicy string
	StorageProfile  string
	DiskMiB         int64 // 0: not known
	Desired         int32
	Available       int32
	Nodes           map[string]string // phases of the machines, by name
}

// supported matches the types of entities that have a section for clusters.
var supported = regexp.MustCompile(`^urn:vcloud:type:vmware:capvcdCluster:1\.([1-9]\d*)\.\d+$`)

// Supports reports whether entities of a type have the layout of 1.1.0.
func Supports(entityType string) bool { return supported.MatchString(entityType) }

// New returns the content of a new entity of a cluster.
func New(entityType string, c Cluster) (json.RawMessage, error) {
	return Project(entityType, json.RawMessage("{}"), c)
}

// Project returns the content of an entity of a type with a cluster in it. Unknown members, and sections of others,
// stay byte for byte, and so does everything if nothing differs. It fails with [ErrForeign] for the entity of another
// cluster, and with [ErrVersion] for a type of another layout.
func Project(entityType string, content json.RawMessage, c Cluster) (json.RawMessage, error) {
	switch {
	case !strings.HasPrefix(entityType, "urn:vcloud:type:vmware:capvcdCluster:"):
		return nil, ErrOtherType
	case !Supports(entityType):
		return nil, ErrVersion
	case len(content) > 0 && !json.Valid(content):
		return nil, errNoObject
	}
	if owner := Owner(content); owner != "" && owner != c.UID {
		return nil, fmt.Errorf("%w, whose id is %s", ErrForeign, owner)
	}
	content, err := apply(content, nil, c.frame())
	if err != nil {
		return nil, err
	}
	return apply(content, []string{"status", "capvcd"}, c.section())
}

// Owner returns the id of the cluster that an entity belongs to; empty if that is not known.
func Owner(content json.RawMessage) string {
	var entity struct {
		Status struct {
			CAPVCD struct {
				UID string `json:"uid"`
			} `json:"capvcd"`
		} `json:"status"`
	}
	_ = json.Unmarshal(content, &entity) // what cannot be read names no owner
	return entity.Status.CAPVCD.UID
}

// ManagedByCSE reports whether VMware's Container Service Extension manages the cluster of an entity, and the entity. Its
// server marks the entity in the spec, and keeps a section of the status. CAPVCD 1.3 loses the mark when it writes the spec.
func ManagedByCSE(content json.RawMessage) bool {
	var entity struct {
		Spec struct {
			VCDKE struct {
				IsVCDKECluster bool `json:"isVCDKECluster"`
			} `json:"vcdKe"`
		} `json:"spec"`
		Status struct {
			VCDKE map[string]any `json:"vcdKe"`
		} `json:"status"`
	}
	_ = json.Unmarshal(content, &entity) // what cannot be read is not managed
	return entity.Spec.VCDKE.IsVCDKECluster || len(entity.Status.VCDKE) > 0
}

// A member is one that is changed.
type member struct {
	path   []string
	change func(json.RawMessage) (json.RawMessage, error)
}

func apply(content json.RawMessage, below []string, members []member) (json.RawMessage, error) {
	for _, m := range members {
		var err error
		if content, err = editPath(content, slices.Concat(below, m.path), m.change); err != nil {
			return nil, fmt.Errorf("%s of the entity: %w", strings.Join(slices.Concat(below, m.path), "."), err)
		}
	}
	return content, nil
}

// frame is what is outside the section of the cluster.
func (c Cluster) frame() []member {
	return []member{
		{[]string{"kind"}, unlessSet("CAPVCDCluster")},
		{[]string{"apiVersion"}, unlessSet("capvcd.vmware.com/v1.1")},
		{[]string{"metadata", "name"}, text(c.Name)},
		{[]string{"metadata", "orgName"}, known(c.Org.Name)},
		{[]string{"metadata", "virtualDataCenterName"}, known(c.firstVDC())},
		{[]string{"metadata", "site"}, text(c.Site)},
		{[]string{"spec"}, unlessSet(struct{}{})},
	}
}

func (c Cluster) firstVDC() string {
	if len(c.VDCs) == 0 {
		return ""
	}
	return c.VDCs[0].Name
}

// section is the section of the cluster.
func (c Cluster) section() []member {
	members := []member{
		{[]string{"uid"}, text(c.UID)},
		{[]string{"phase"}, known(c.Phase)},
		{[]string{"kubernetes"}, known(c.Release.Kubernetes)},
		{[]string{"capvcdVersion"}, text(semantic(c.Version))},
		{[]string{"createdByVersion"}, unlessSet(semantic(c.Version))},
		{[]string{"parentUid"}, known(c.ParentUID)},
		{[]string{"clusterApiStatus", "phase"}, text(readiness(c.Ready))},
		{[]string{"clusterApiStatus", "apiEndpoints"}, value(c.endpoints())},
		{[]string{"k8sNetwork", "pods", "cidrBlocks"}, value(orEmpty(c.Pods))},
		{[]string{"k8sNetwork", "services", "cidrBlocks"}, value(orEmpty(c.Services))},
		{[]string{"vcdProperties", "site"}, text(c.Site)},
		{[]string{"nodePool"}, pools(c.Pools)},
		{[]string{"upgrade"}, c.upgrade},
		{[]string{"vcdResourceSet"}, vApps(c.VApps)},
		{[]string{"errorSet"}, window("Detailed Error", c.Errors, isClusterError)},
		{[]string{"eventSet"}, window("Detailed Event", c.Events, nil)},
	}
	if c.Org.ID != "" {
		members = append(members, member{[]string{"vcdProperties", "organizations"}, value([]Named{c.Org})})
	}
	if len(c.VDCs) > 0 {
		members = append(members, member{[]string{"vcdProperties", "orgVdcs"}, value(c.VDCs)})
	}
	if c.Management != nil {
		members = append(members, member{[]string{"useAsManagementCluster"}, value(*c.Management)})
	}
	if c.Kubeconfig != nil {
		members = append(members, member{[]string{"private", "kubeConfig"}, secret(*c.Kubeconfig)})
	}
	return members
}

func readiness(ready bool) string {
	if ready {
		return "Ready"
	}
	return "Not Ready"
}

// An apiEndpoint is an endpoint as it is written.
type apiEndpoint struct {
	Host string `json:"host"`
	Port int32  `json:"port"`
}

func (c Cluster) endpoints() []apiEndpoint {
	if c.Host == "" {
		return []apiEndpoint{}
	}
	return []apiEndpoint{{c.Host, c.Port}}
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

var release = regexp.MustCompile(`^v?(\d+\.\d+\.\d+.*)$`)

// semantic returns the number of a release; readers of entities parse it. Other builds have none.
func semantic(version string) string {
	if match := release.FindStringSubmatch(version); match != nil {
		return match[1]
	}
	return "0.0.0"
}

// upgrade notes the release before the current one when that changes.
func (c Cluster) upgrade(old json.RawMessage) (json.RawMessage, error) {
	if c.Release.Kubernetes == "" {
		return old, nil
	}
	var have struct {
		Current  json.RawMessage `json:"current"`
		Previous json.RawMessage `json:"previous"`
	}
	var current Release
	_ = json.Unmarshal(old, &have) // what cannot be read is replaced
	_ = json.Unmarshal(have.Current, &current)
	var members []member
	switch {
	case current.Kubernetes != "" && current.Kubernetes != c.Release.Kubernetes:
		members = append(members, member{[]string{"previous"}, value(have.Current)})
	case string(have.Previous) == "null": // CAPVCD writes that, where the schema wants an object.
		members = append(members, member{[]string{"previous"}, value(struct{}{})})
	}
	members = append(members, member{[]string{"current", "kubernetesVersion"}, text(c.Release.Kubernetes)},
		member{[]string{"current", "tkgVersion"}, known(c.Release.TKG)}, member{[]string{"ready"}, value(c.Upgraded)})
	return apply(old, nil, members)
}

// pools lists node pools. What others wrote in the element of a pool stays.
func pools(want []NodePool) func(json.RawMessage) (json.RawMessage, error) {
	return editList(func(elements []json.RawMessage) ([]json.RawMessage, error) {
		have := map[string]json.RawMessage{}
		for _, element := range elements {
			var named Named
			if json.Unmarshal(element, &named) == nil {
				have[named.Name] = element
			}
		}
		var out []json.RawMessage
		for _, p := range slices.SortedFunc(slices.Values(want),
			func(a, b NodePool) int { return cmp.Compare(a.Name, b.Name) }) {
			element, err := apply(have[p.Name], nil, p.members())
			if err != nil {
				return nil, err
			}
			out = append(out, element)
		}
		return out, nil
	})
}

func (p NodePool) members() []member {
	members := []member{
		{[]string{"name"}, text(p.Name)},
		{[]string{"sizingPolicy"}, known(p.SizingPolicy)},
		{[]string{"placementPolicy"}, known(p.PlacementPolicy)},
		{[]string{"storageProfile"}, known(p.StorageProfile)},
		{[]string{"desiredReplicas"}, value(p.Desired)},
		{[]string{"availableReplicas"}, value(p.Available)},
	}
	if p.DiskMiB > 0 {
		members = append(members, member{[]string{"diskSizeMb"}, value(p.DiskMiB)})
	}
	nodes := p.Nodes
	if nodes == nil {
		nodes = map[string]string{}
	}
	return append(members, member{[]string{"nodeStatus"}, value(nodes)})
}

// vApps lists the vApps among the resources. Resources of other types stay.
func vApps(want []Resource) func(json.RawMessage) (json.RawMessage, error) {
	return editList(func(elements []json.RawMessage) ([]json.RawMessage, error) {
		var out []json.RawMessage
		have := map[string]json.RawMessage{}
		for _, element := range elements {
			var r wireResource
			if json.Unmarshal(element, &r) == nil && r.Type == VAppResource {
				have[r.ID] = element
				continue
			}
			out = append(out, element)
		}
		for _, r := range want {
			element, err := apply(have[r.ID], nil, []member{
				{[]string{"type"}, text(VAppResource)},
				{[]string{"id"}, text(r.ID)},
				{[]string{"name"}, text(r.Name)},
				{[]string{"additionalDetails"}, unlessSet(struct{}{})},
			})
			if err != nil {
				return nil, err
			}
			out = append(out, element)
		}
		return out, nil
	})
}

// value writes a value, unless the same is there.
func value(want any) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		raw, err := json.Marshal(want)
		if err != nil {
			return nil, fmt.Errorf("writing JSON: %w", err)
		}
		if old != nil && sameValue(old, raw) {
			return old, nil
		}
		return raw, nil
	}
}

func sameValue(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// known writes a text, unless it is empty: then what is there stays.
func known(want string) func(json.RawMessage) (json.RawMessage, error) {
	if want == "" {
		return func(old json.RawMessage) (json.RawMessage, error) { return old, nil }
	}
	return text(want)
}

// secret writes a text; an empty one replaces what is there, and is not added.
func secret(want string) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		if want == "" && old == nil {
			return nil, nil
		}
		return text(want)(old)
	}
}

// unlessSet writes a value where there is none.
func unlessSet(want any) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		if old != nil && string(old) != "null" {
			return old, nil
		}
		return value(want)(nil)
	}
}
