// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

const (
	kubeConfig  = "urn:vcloud:behavior-interface:createKubeConfig:vmware:k8s:1.0.0"
	clusterType = "entityTypes/urn:vcloud:type:vmware:capvcdCluster:"
	// content is the minimum that the schema of a cluster accepts.
	content = `{"kind":"CAPVCDCluster","apiVersion":"capvcd.vmware.com/v1.1","metadata":{},"spec":{}}`
)

// entity creates and resolves an entity of a type and returns its ID.
func (c *client) entity(version, name string) string {
	a := c.call(http.MethodPost, cloudAPI+clusterType+version, `{"name":"`+name+`","entity":`+content+`}`)
	c.Expect(a.status).To(Equal(http.StatusAccepted), string(a.body))
	id := c.get(a.header.Get("Location")).xml.At("Owner").Attr("id")
	c.Expect(c.call(http.MethodPost, cloudAPI+"entities/"+id+"/resolve", "").status).To(Equal(http.StatusOK))
	return id
}

func TestATypeOverridesABehaviorWithoutChangingTheInterface(t *testing.T) {
	c := start(t)
	id := c.entity("1.1.0", "cluster")
	invoke := func() (status, answer string) {
		a := c.call(http.MethodPost, cloudAPI+"entities/"+id+"/behaviors/"+kubeConfig+"/invocations",
			`{"arguments":{"a":1}}`)
		c.Expect(a.status).To(Equal(http.StatusAccepted), string(a.body))
		task := c.get(a.header.Get("Location")).xml
		return task.Attr("status"), task.Str("Result", "ResultContent")
	}
	status, _ := invoke()
	c.Expect(status).To(Equal("error"), "VCD provides activities itself")

	p := c.provider()
	own := cloudAPI + clusterType + "1.1.0/behaviors"
	put := p.call(http.MethodPut, own+"/"+kubeConfig, `{"name":"other","description":"d","execution":{"type":"noop"}}`)
	c.Expect(put.json).To(And(HaveKeyWithValue("name", "createKubeConfig"), HaveKeyWithValue("ref", kubeConfig),
		HaveKeyWithValue("id",
			"urn:vcloud:behavior-type:createKubeConfig:vmware:capvcdCluster:1.1.0:vmware:k8s:1.0.0")), string(put.body))
	status, answer := invoke()
	c.Expect(status).To(Equal("success"))
	c.Expect(answer).To(And(ContainSubstring(`"entityId":"`+id+`"`), ContainSubstring(`"arguments":{"a":1}`),
		ContainSubstring(`"kind":"CAPVCDCluster"`)))

	inherited := c.get(cloudAPI + "interfaces/urn:vcloud:interface:vmware:k8s:1.0.0/behaviors/" + kubeConfig).json
	c.Expect(inherited).To(HaveKeyWithValue("execution", HaveKeyWithValue("type", "Activity")),
		"behaviors of another type are unchanged")
	c.Expect(c.values(clusterType + "1.2.0/behaviors")).To(ConsistOf(HaveKeyWithValue("id", kubeConfig)))
	c.refused(http.MethodPut, own+"/"+kubeConfig, `{"execution":{}}`, 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodGet, own+"/urn:vcloud:behavior-type:x:y:z:1", "", 400, "RDE_INVALID_BEHAVIOR_SCOPE")

	c.Expect(p.call(http.MethodDelete, own+"/"+kubeConfig, "").status).To(Equal(http.StatusNoContent))
	c.Expect(c.values(clusterType + "1.1.0/behaviors")).To(ConsistOf(HaveKeyWithValue("id", kubeConfig)))
	p.refused(http.MethodDelete, own+"/"+kubeConfig, "", 400, "RDE_INVALID_BEHAVIOR_SCOPE")
}

func TestEntitiesByTypeInterfaceAndPartialVersion(t *testing.T) {
	c := start(t)
	a := c.entity("1.1.0", "a")
	b := c.entity("1.2.0", "b")
	ids := func(path string) (out []any) {
		for _, e := range c.values("entities/" + path) {
			out = append(out, e["id"])
		}
		return out
	}
	c.Expect(ids("types/vmware/capvcdCluster/1.1.0")).To(ConsistOf(a))
	c.Expect(ids("types/vmware/capvcdCluster/1.2")).To(ConsistOf(b))
	c.Expect(ids("types/vmware/capvcdCluster/1")).To(ConsistOf(a, b))
	c.Expect(ids("types/vmware/capvcdCluster/2")).To(BeEmpty())
	c.Expect(ids("interfaces/vmware/k8s/1")).To(ConsistOf(a, b))
	c.Expect(ids("interfaces/vmware/k8s/1.1")).To(BeEmpty())
}
