// SPDX-License-Identifier: Apache-2.0

package vcdconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// decisive are keys whose absence means something, too: CPI has them. Of others, only values that are there count.
var decisive = []string{
	"clusterid", "vAppName", "vcd.host", "vcd.org", "vcd.vdc", "loadbalancer.network", "loadbalancer.oneArm",
	"loadbalancer.vipSubnet", "loadbalancer.certAlias",
}

// A Difference is a key that has another value in two configurations; an empty value is none.
type Difference struct{ Key, Found, Wanted string }

// Differences returns, by key, in what a configuration that was found does not do the same as the one that is wanted in
// its place: what is served, and where. What only the wanted one has is its own affair unless it moves load balancers.
// Credentials, trust and limits are not compared. Without a vApp in the wanted
// one, nodes are found by their provider IDs, and the vApp is not compared either.
func Differences(found, wanted Config) []Difference {
	if wanted.VAppName == "" {
		found.VAppName = ""
	}
	have := values(found)
	want := values(wanted)
	var all []Difference
	for _, key := range slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(slices.Clone(decisive),
		maps.Keys(have))))) {
		if have[key] != want[key] {
			all = append(all, Difference{key, have[key], want[key]})
		}
	}
	return all
}

// values returns the values that decide what c does, by key.
func values(c Config) map[string]string {
	c.writeDefaults()
	c.VCD = VCD{Host: c.VCD.Host, Org: c.VCD.Org, VDC: c.VCD.VDC, VDCs: c.VCD.VDCs}
	c.Nodes.MaxAge = metav1.Duration{}
	c.LoadBalancer.DriftInterval = metav1.Duration{}
	raw, err := json.Marshal(c)
	var tree map[string]any
	if err == nil {
		err = json.Unmarshal(raw, &tree)
	}
	if err != nil {
		panic(err) // The schema is part of the program.
	}
	out := map[string]string{}
	flatten(out, "", tree)
	return out
}

// writeDefaults writes out defaults, so that a value and its absence compare equal where they mean the same.
func (c *Config) writeDefaults() {
	c.VCD.Host = siteOf(c.VCD.Host)
	b := &c.LoadBalancer
	b.Enabled = new(!b.Disabled())
	if b.CertAlias == "" {
		b.CertAlias = c.ClusterID + "-cert"
	}
	if b.Algorithm == algorithms[0] {
		b.Algorithm = ""
	}
}

func flatten(out map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		if from, ok := v["startIP"]; ok {
			out[path] = fmt.Sprintf("%v-%v", from, v["endIP"])
			return
		}
		for key, inner := range v {
			flatten(out, strings.TrimPrefix(path+"."+key, "."), inner)
		}
	case []any:
		for i, inner := range v {
			flatten(out, fmt.Sprintf("%s[%d]", path, i), inner)
		}
	default:
		out[path] = fmt.Sprint(v)
	}
}
