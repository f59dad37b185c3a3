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

// clusterWindow is how many errors and how many events of the cluster are kept.
const clusterWindow = 20

// VAppResource is the resource type of vApps.
const VAppResource = "VApp"

// Errors for entities that cannot hold the section of the cluster.
var (
	// ErrForeign means that the entity belongs to another cluster.
	ErrForeign = errors.New("the entity belongs to another cluster")
	// ErrVersion means that the version of the entity's type has an unsupported layout.
	ErrVersion = errors.New("the version of the entity's type is not supported: it must be 1.1.0 or later, below 2.0.0")
)

// A Cluster is the content of the section status.capvcd, and of the metadata of the entity.
type Cluster struct {
	UID       string // ID of the cluster that owns the entity
	Name      string
	Site      string
	Org       Named
	VDCs      []VDC
	Version   string // of the controller
	Phase     string // of the Cluster
	Ready     bool   // whether the control plane is ready
	Host      string // of the API server; empty: unknown
	Port      int32
	Release   Release
	Upgraded  bool // whether all machines have the version
	Pods      []string
	Services  []string
	Pools     []NodePool
	VApps     []Resource
	Errors    []Entry // current errors
	Events    []Entry
	ParentUID string // empty: unchanged

	Management *bool   // nil: unchanged
	Kubeconfig *string // nil: unchanged
}

// Named is an object in VCD.
type Named struct {
	Name string `json:"name,omitempty"`
	ID   string `json:"id,omitempty"`
}

// A VDC is a VDC with machines of the cluster.
type VDC struct {
	Named

	Network string `json:"ovdcNetworkName,omitempty"`
}

// A Release holds the versions that a cluster runs.
type Release struct {
	Kubernetes string `json:"kubernetesVersion,omitempty"`
	TKG        string `json:"tkgVersion,omitempty"`
}

// A NodePool is the control plane, or the machines of one MachineDeployment.
type NodePool struct {
	Name            string
	SizingPolicy    string
	PlacementPolicy string
	StorageProfile  string
	DiskMiB         int64 // 0: unknown
	Desired         int32
	Available       int32
	Nodes           map[string]string // phases of the machines, by name
}

// supported matches the entity types that have a section for clusters.
var supported = regexp.MustCompile(`^urn:vcloud:type:vmware:capvcdCluster:1\.([1-9]\d*)\.\d+$`)

// Supports reports whether entities of a type have the layout of version 1.1.0.
func Supports(entityType string) bool { return supported.MatchString(entityType) }

// New returns the content of a new entity for a cluster.
func New(entityType string, c Cluster) (json.RawMessage, error) {
	return Project(entityType, json.RawMessage("{}"), c)
}

// Project returns the content of an entity, updated with a cluster. Unknown members and the sections of other writers
// stay byte for byte, as does the whole content if nothing differs. Project fails with [ErrForeign] for the entity of
// another cluster, and with [ErrVersion] for a type with an unsupported layout.
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

// Owner returns the ID of the cluster that owns an entity; empty if it is unknown.
func Owner(content json.RawMessage) string {
	var entity struct {
		Status struct {
			CAPVCD struct {
				UID string `json:"uid"`
			} `json:"capvcd"`
		} `json:"status"`
	}
	_ = json.Unmarshal(content, &entity) // invalid content names no owner
	return entity.Status.CAPVCD.UID
}

// ManagedByCSE reports whether VMware's Container Service Extension manages an entity and its cluster. Its server marks
// the entity in the spec, and keeps a section of the status. CAPVCD 1.3 drops the mark when it writes the spec.
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
	_ = json.Unmarshal(content, &entity) // invalid content is not managed
	return entity.Spec.VCDKE.IsVCDKECluster || len(entity.Status.VCDKE) > 0
}

// A member is the change of one member.
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

// frame returns the members outside the section of the cluster.
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

// section returns the members of the section of the cluster.
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

// An apiEndpoint is the JSON form of an endpoint.
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

// semantic returns the version of a release without its prefix, because readers of entities parse it. Other builds get
// 0.0.0.
func semantic(version string) string {
	if match := release.FindStringSubmatch(version); match != nil {
		return match[1]
	}
	return "0.0.0"
}

// upgrade updates the current release. If it changes, upgrade also records the previous one.
func (c Cluster) upgrade(old json.RawMessage) (json.RawMessage, error) {
	if c.Release.Kubernetes == "" {
		return old, nil
	}
	var have struct {
		Current  json.RawMessage `json:"current"`
		Previous json.RawMessage `json:"previous"`
	}
	var current Release
	_ = json.Unmarshal(old, &have) // invalid content is replaced
	_ = json.Unmarshal(have.Current, &current)
	var members []member
	switch {
	case current.Kubernetes != "" && current.Kubernetes != c.Release.Kubernetes:
		members = append(members, member{[]string{"previous"}, value(have.Current)})
	case string(have.Previous) == "null": // CAPVCD writes null, but the schema requires an object.
		members = append(members, member{[]string{"previous"}, value(struct{}{})})
	}
	members = append(members, member{[]string{"current", "kubernetesVersion"}, text(c.Release.Kubernetes)},
		member{[]string{"current", "tkgVersion"}, known(c.Release.TKG)}, member{[]string{"ready"}, value(c.Upgraded)})
	return apply(old, nil, members)
}

// pools writes the list of node pools. Members that other writers added to the element of a pool are kept.
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

// vApps writes the vApps among the resources. Resources of other types are kept.
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

// value writes a value, unless the old one is equal.
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

// known writes a text. An empty text means unknown, and keeps the old value.
func known(want string) func(json.RawMessage) (json.RawMessage, error) {
	if want == "" {
		return func(old json.RawMessage) (json.RawMessage, error) { return old, nil }
	}
	return text(want)
}

// secret writes a text. An empty text replaces an old value, but does not add the member.
func secret(want string) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		if want == "" && old == nil {
			return nil, nil
		}
		return text(want)(old)
	}
}

// unlessSet writes a value if the member is missing or null.
func unlessSet(want any) func(json.RawMessage) (json.RawMessage, error) {
	return func(old json.RawMessage) (json.RawMessage, error) {
		if old != nil && string(old) != "null" {
			return old, nil
		}
		return value(want)(nil)
	}
}
