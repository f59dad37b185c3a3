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

// decisive are keys of CPI whose absence is also significant. Other keys are only compared if they have a value.
var decisive = []string{
	"clusterid", "vAppName", "vcd.host", "vcd.org", "vcd.vdc", "loadbalancer.network", "loadbalancer.oneArm",
	"loadbalancer.vipSubnet", "loadbalancer.certAlias",
}

// A Difference is a key with different values in two configurations. An empty value means that the key is absent.
type Difference struct{ Key, Found, Wanted string }

// Differences returns the differences in behavior between an existing configuration and the one that should replace it,
// by key: what is served, and where. Keys that only the new configuration has are ignored, unless they move load
// balancers. Credentials, trust and limits are not compared. If the new configuration has no vApp, nodes are found by
// their provider IDs, and the vApp is not compared either.
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

// values returns the values that determine the behavior of c, by key.
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

// writeDefaults sets default values explicitly, so that a value equals its absence if both have the same meaning.
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
