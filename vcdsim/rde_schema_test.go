// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

func TestEntitiesAreValidatedAgainstTheSchemaOfTheirType(t *testing.T) {
	for name, tt := range map[string]struct{ entity, refusal string }{
		"only the required fields": {content, ""},
		"undefined fields": {
			strings.Replace(content, `"spec":{}`, `"spec":{"vcdKe":{"secure":{}}},"status":{"csi":[]},"x":1`, 1),
			"",
		},
		"a section that is null":      {withCAPVCD(`"upgrade":{"previous":null}`), ""},
		"a kind that is a number":     {`{"kind":5}`, "#/kind"},
		"no version":                  {`{"kind":"CAPVCDCluster","metadata":{},"spec":{}}`, "'apiVersion'"},
		"node pools with names":       {withCAPVCD(`"nodePool":{"a":"b"}`), "#/status/capvcd/nodePool"},
		"a pool without a number":     {withCAPVCD(`"nodePool":[{"desiredReplicas":"3"}]`), "#/status/capvcd/nodePool/0"},
		"a network with another name": {withCAPVCD(`"k8sNetwork":{"pods":{"cidrBlocks":[7]}}`), "#/status/capvcd/k8sNetwork/pods"},
	} {
		t.Run(name, func(t *testing.T) {
			c := start(t)
			a := c.call(http.MethodPost, cloudAPI+clusterType+"1.1.0", `{"name":"c","entity":`+tt.entity+`}`)
			id := c.get(a.header.Get("Location")).xml.At("Owner").Attr("id")
			resolved := c.call(http.MethodPost, cloudAPI+"entities/"+id+"/resolve", "").json
			if tt.refusal == "" {
				c.Expect(resolved).To(HaveKeyWithValue("state", "RESOLVED"), "%v", resolved)
				return
			}
			c.Expect(resolved).To(HaveKeyWithValue("state", "RESOLUTION_ERROR"))
			c.Expect(resolved).To(HaveKeyWithValue("message", ContainSubstring(tt.refusal)))

			path := cloudAPI + "entities/" + c.entity("1.1.0", "other")
			body := `{"name":"c","entity":` + tt.entity + `}`
			before := c.get(path).json
			c.Expect(c.refused(http.MethodPut, path, body, 400, "RDE_ENTITY_NOT_VALID")).To(ContainSubstring(tt.refusal))
			c.Expect(c.get(path).json).To(Equal(before))
		})
	}
}

func TestNullIsValidatedAgainstTheSchemaIfAssumed(t *testing.T) {
	c := start(t)
	c.sim.Edit(func(e *vcdsim.Editor) { e.Assumptions().EntitiesAdmitNull = false })
	path := cloudAPI + "entities/" + c.entity("1.1.0", "other")
	body := `{"name":"c","entity":` + withCAPVCD(`"upgrade":{"previous":null}`) + `}`
	c.Expect(c.refused(http.MethodPut, path, body, 400, "RDE_ENTITY_NOT_VALID")).To(ContainSubstring("previous"))
}

// withCAPVCD returns the content of an entity with fields in its section status.capvcd.
func withCAPVCD(members string) string {
	return strings.TrimSuffix(content, "}") + `,"status":{"capvcd":{` + members + `}}}`
}

func TestATypeNeedsAValidSchema(t *testing.T) {
	c := start(t)
	p := c.provider()
	p.refused(http.MethodPost, cloudAPI+"entityTypes", `{"vendor":"acme","nss":"thing","version":"1.0.0","name":"thing",
		"schema":{"type":"nothing"}}`, 400, "BAD_REQUEST")
	p.refused(http.MethodPost, cloudAPI+"entityTypes", `{"vendor":"acme","nss":"thing","version":"1.0.0","name":"thing",
		"schema":{"$ref":"file:///etc/hostname"}}`, 400, "BAD_REQUEST")
}
