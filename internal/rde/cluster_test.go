// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
)

func cluster(mods ...func(*Cluster)) Cluster {
	c := Cluster{
		UID:      "infra-1",
		Name:     "c1",
		Site:     "https://vcd.example.com",
		Org:      Named{"acme", "urn:vcloud:org:1"},
		VDCs:     []VDC{{Named{"acme-vdc", "urn:vcloud:vdc:1"}, "nodes"}},
		Version:  "v2.0.0",
		Phase:    "Provisioned",
		Ready:    true,
		Host:     "192.0.2.1",
		Port:     6443,
		Release:  Release{Kubernetes: "v1.36.3"},
		Upgraded: true,
		Pods:     []string{"10.0.0.0/16"},
		Services: []string{"10.1.0.0/16"},
		Pools: []NodePool{
			{Name: "workers", SizingPolicy: "large", Desired: 2, Available: 1, Nodes: map[string]string{"w1": "Running"}},
			{Name: "cp", DiskMiB: 20480, Desired: 1, Available: 1, Nodes: map[string]string{"cp1": "Running"}},
		},
		VApps:  []Resource{{ID: "urn:vcloud:vapp:1", Name: "c1"}},
		Events: []Entry{{Name: ControlPlaneReady, OccurredAt: noon, ResourceName: "c1", Detail: "ready"}},
	}
	for _, mod := range mods {
		mod(&c)
	}
	return c
}

const wholeSection = `{"uid":"infra-1","phase":"Provisioned","kubernetes":"v1.36.3","capvcdVersion":"2.0.0","createdByVersion":"2.0.0",
"clusterApiStatus":{"phase":"Ready","apiEndpoints":[{"host":"192.0.2.1","port":6443}]},
"k8sNetwork":{"pods":{"cidrBlocks":["10.0.0.0/16"]},"services":{"cidrBlocks":["10.1.0.0/16"]}},
"vcdProperties":{"site":"https://vcd.example.com","organizations":[{"name":"acme","id":"urn:vcloud:org:1"}],
	"orgVdcs":[{"name":"acme-vdc","id":"urn:vcloud:vdc:1","ovdcNetworkName":"nodes"}]},
"nodePool":[
	{"name":"cp","desiredReplicas":1,"availableReplicas":1,"diskSizeMb":20480,"nodeStatus":{"cp1":"Running"}},
	{"name":"workers","sizingPolicy":"large","desiredReplicas":2,"availableReplicas":1,"nodeStatus":{"w1":"Running"}}],
"upgrade":{"current":{"kubernetesVersion":"v1.36.3"},"ready":true},
"vcdResourceSet":[{"type":"VApp","id":"urn:vcloud:vapp:1","name":"c1","additionalDetails":{}}],
"errorSet":[],
"eventSet":[{"name":"ControlplaneReady","occurredAt":"2026-08-01T12:00:00Z","vcdResourceId":"","vcdResourceName":"c1",
	"additionalDetails":{"Detailed Event":"ready"}}]}`

func TestANewEntityHasAllSections(t *testing.T) {
	g := NewWithT(t)

	content, err := New(capvcd, cluster())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(MatchJSON(`{"kind":"CAPVCDCluster","apiVersion":"capvcd.vmware.com/v1.1",
"metadata":{"name":"c1","orgName":"acme","virtualDataCenterName":"acme-vdc","site":"https://vcd.example.com"},
"spec":{},"status":{"capvcd":` + strings.Replace(wholeSection, `"errorSet":[],`, "", 1) + `}}`))
}

// adopted is an entity with content of CAPVCD, the CSI driver, CSE and an unknown program. It has numbers and spaces
// that only byte-wise copying preserves.
const adopted = `{ "kind":"CAPVCDCluster","apiVersion":"capvcd.vmware.com/v1.3", "x":1.0e0,
 "metadata":{ "name":"c1", "mine" : 12345678901234567890 }, "spec": {"yamlSet":[ "a"],"vcdKe":{"secure":{} }},
 "status": {"csi":{"pv":[ 1,2 ]}, "cpi": {"virtualIPs":[ "192.0.2.9" ]}, "vcdKe":{ "state":"x" },
  "capvcd":{"uid":"infra-1", "createdByVersion":"1.3.0", "capiStatusYaml":"y", "future": { "a":1.00 },
   "nodePool":[ {"name":"cp", "own" : 1.0, "desiredReplicas":3} , {"name":"gone"} ],
   "private":{"kubeConfig":"old","other": 1.0},
   "vcdResourceSet":[ {"type":"virtual-service","id":"v","name":"n", "z":1.0}, {"type":"VApp","id":"gone","name":"g"} ],
   "errorSet":[ {"name":"LoadBalancerError"}, {"name":"TheirError", "q":1.0} ],
   "upgrade":{"current":{"kubernetesVersion":"v1.35.0", "tkgVersion":"t" }, "later" : 1.0} } } }`

func TestForeignFieldsAreKept(t *testing.T) {
	g := NewWithT(t)

	content, err := Project(capvcd, json.RawMessage(adopted), cluster())

	g.Expect(err).NotTo(HaveOccurred())
	for _, kept := range []string{
		`"x":1.0e0`, `"mine" : 12345678901234567890`, `"apiVersion":"capvcd.vmware.com/v1.3"`,
		`"spec": {"yamlSet":[ "a"],"vcdKe":{"secure":{} }}`, `"csi":{"pv":[ 1,2 ]}`, `"vcdKe":{ "state":"x" }`,
		`"cpi": {"virtualIPs":[ "192.0.2.9" ]}`, `"future": { "a":1.00 }`, `"own" : 1.0`, `"capiStatusYaml":"y"`,
		`{"kubeConfig":"old","other": 1.0}`, `{"type":"virtual-service","id":"v","name":"n", "z":1.0}`,
		`{"name":"TheirError", "q":1.0}`, `"later" : 1.0`, `"createdByVersion":"1.3.0"`,
		`"previous":{"kubernetesVersion":"v1.35.0","tkgVersion":"t"}`,
	} {
		g.Expect(string(content)).To(ContainSubstring(kept))
	}
	for _, gone := range []string{"gone", "LoadBalancerError"} {
		g.Expect(string(content)).NotTo(ContainSubstring(gone))
	}
	again, err := Project(capvcd, content, cluster())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(again)).To(Equal(string(content)), "byte for byte")
}

func TestAMissingPreviousReleaseIsAnObject(t *testing.T) {
	g := NewWithT(t)
	const ofCAPVCD = `{"status":{"capvcd":{"upgrade":{"current":{"kubernetesVersion":"v1.36.3"},"previous":null}}}}`

	content, err := Project(capvcd, json.RawMessage(ofCAPVCD), cluster())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).To(ContainSubstring(`"previous":{}`), "VCD may reject null, which the schema does not allow")
}

func TestTheKubeconfigIsIncludedOnlyIfRequested(t *testing.T) {
	for name, tt := range map[string]struct {
		kubeconfig *string
		before     string
		want       string
	}{
		"it is unchanged":     {nil, `"old"`, `"old"`},
		"it is written":       {ptr.To("new"), `"old"`, `"new"`},
		"it is removed again": {ptr.To(""), `"old"`, `""`},
		"a new one":           {ptr.To("new"), "", `"new"`},
		"nothing to remove":   {ptr.To(""), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := `{}`
			if tt.before != "" {
				before = `{"status":{"capvcd":{"private":{"kubeConfig":` + tt.before + `}}}}`
			}

			content, err := Project(capvcd, json.RawMessage(before), cluster(func(c *Cluster) { c.Kubeconfig = tt.kubeconfig }))

			g.Expect(err).NotTo(HaveOccurred())
			if tt.want == "" {
				g.Expect(string(content)).NotTo(ContainSubstring("kubeConfig"))
				return
			}
			g.Expect(string(content)).To(ContainSubstring(`"kubeConfig":` + tt.want))
		})
	}
}

func TestRejectedEntities(t *testing.T) {
	for name, tt := range map[string]struct {
		entityType, content string
		want                error
	}{
		"of another cluster":         {capvcd, `{"status":{"capvcd":{"uid":"infra-2"}}}`, ErrForeign},
		"with the first layout":      {"urn:vcloud:type:vmware:capvcdCluster:1.0.0", `{}`, ErrVersion},
		"with a later layout":        {"urn:vcloud:type:vmware:capvcdCluster:2.1.0", `{}`, ErrVersion},
		"of another kind":            {"urn:vcloud:type:cse:nativeCluster:2.1.0", `{}`, ErrOtherType},
		"a list":                     {capvcd, `[]`, errNoObject},
		"not JSON":                   {capvcd, `{`, errNoObject},
		"a section that is a string": {capvcd, `{"status":{"capvcd":"x"}}`, errNoObject},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)

			_, err := Project(tt.entityType, json.RawMessage(tt.content), cluster())

			g.Expect(err).To(MatchError(tt.want))
		})
	}
	NewWithT(t).Expect([]bool{Supports(strings.Replace(capvcd, "1.1.0", "1.3.0", 1)), Supports(capvcd)}).
		To(Equal([]bool{true, true}))
}

func TestOnlyCurrentErrorsAndRecentEventsAreKept(t *testing.T) {
	g := NewWithT(t)
	failing := func(n int) func(*Cluster) {
		return func(c *Cluster) {
			for i := range n {
				c.Errors = append(c.Errors, Entry{
					Name:         MachineError,
					OccurredAt:   noon.Add(time.Duration(i) * time.Minute),
					ResourceName: "m",
					Detail:       "no room",
				})
			}
		}
	}
	content, err := New(capvcd, cluster(failing(30)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(string(content), MachineError)).To(Equal(clusterWindow))
	g.Expect(string(content)).To(ContainSubstring(noon.Add(29 * time.Minute).Format(time.RFC3339)))

	content, err = Project(capvcd, content, cluster(failing(1)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(string(content), MachineError)).To(Equal(1))

	content, err = Project(capvcd, content, cluster())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(content)).NotTo(ContainSubstring(MachineError))

	for i := range 50 {
		content, err = Project(capvcd, content, cluster(func(c *Cluster) {
			c.Events = []Entry{{Name: MachinePoweredOn, OccurredAt: noon.Add(time.Duration(i) * time.Second), ResourceName: "m"}}
		}))
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(strings.Count(string(content), MachinePoweredOn)).To(Equal(clusterWindow))
	g.Expect(string(content)).NotTo(ContainSubstring(ControlPlaneReady), "it is older")
}

func TestVersionsThatReadersParse(t *testing.T) {
	g := NewWithT(t)
	for version, want := range map[string]string{
		"v2.0.0":              "2.0.0",
		"2.1.0-rc.1":          "2.1.0-rc.1",
		"commit 0123456789ab": "0.0.0",
		"":                    "0.0.0",
	} {
		g.Expect(semantic(version)).To(Equal(want))
	}
}

func FuzzProject(f *testing.F) {
	f.Add(adopted)
	f.Add(`{"status":{"capvcd":{"nodePool":[1,null,{"name":"cp"}],"eventSet":[7,{"occurredAt":"x"}]}}}`)
	f.Add(`{"status":{"capvcd":{"upgrade":7}},"spec":null}`)
	f.Fuzz(func(t *testing.T, content string) {
		once, err := Project(capvcd, json.RawMessage(content), cluster())
		if err != nil {
			return
		}
		if !json.Valid(once) {
			t.Fatalf("%q became %q", content, once)
		}
		if twice, err := Project(capvcd, once, cluster()); err != nil || string(twice) != string(once) {
			t.Fatalf("again: %q became %q, %v", once, twice, err)
		}
	})
}

func TestCSEEntitiesAreDistinguishedFromOthers(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		managed bool
	}{
		"marked by its server":             {`{"spec":{"vcdKe":{"isVCDKECluster":true}}}`, true},
		"with a section of its server":     {`{"spec":{"capiYaml":"x"},"status":{"vcdKe":{"state":"provisioned"}}}`, true},
		"with unmarked objects":            {`{"spec":{"vcdKe":{"isVCDKECluster":false}},"status":{"vcdKe":{}}}`, false},
		"only of the cluster API provider": {`{"spec":{},"status":{"capvcd":{"uid":"x"}}}`, false},
		"that is unreadable":               {`{"spec":7}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(ManagedByCSE(json.RawMessage(test.content))).To(Equal(test.managed))
		})
	}
}
