// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// clusterEntity creates an entity of CAPVCD's type and returns its ID.
func (c *client) clusterEntity() string {
	const types = "/cloudapi/1.0.0/entityTypes/urn:vcloud:type:vmware:capvcdCluster:1.1.0"
	task := c.call(http.MethodPost, types,
		`{"name":"cluster","entity":{"kind":"CAPVCDCluster"}}`).header.Get("Location")
	owner := c.get(task).xml.At("Owner").Attr("href")
	return "urn:vcloud:entity:vmware:capvcdCluster:" + owner[len(owner)-36:]
}

func TestMetadataOfAnEntity(t *testing.T) {
	c := start(t)
	path := "/cloudapi/1.0.0/entities/" + c.clusterEntity() + "/metadata"
	entry := func(value string) string {
		return `{"keyValue":{"domain":"TENANT","key":"k","value":{"type":"StringEntry","value":"` + value + `"}}}`
	}
	c.Expect(c.get(path).json["resultTotal"]).To(BeEquivalentTo(0))

	made := c.call(http.MethodPost, path, entry("a"))

	c.Expect(made.status).To(Equal(http.StatusCreated), "%s", made.body)
	one := path + "/" + made.json["id"].(string)
	c.refused(http.MethodPost, path, entry("b"), 400, "BAD_REQUEST")
	c.Expect(c.call(http.MethodPut, one, entry("b")).status).To(Equal(http.StatusOK))
	c.Expect(c.get(path + "?filter=keyValue.key==k").json["values"]).To(ConsistOf(
		HaveKeyWithValue("keyValue", HaveKeyWithValue("value", HaveKeyWithValue("value", "b")))))
	c.refused(http.MethodPut, one, `{"keyValue":{"key":"other"}}`, 400, "BAD_REQUEST")
	for value, code := range map[string]string{
		`{"type":"NumberEntry","value":"a"}`:                     "BAD_REQUEST",
		`{"type":"BoolEntry","value":1}`:                         "BAD_REQUEST",
		`{"type":"DateEntry","value":"a"}`:                       "BAD_REQUEST",
		`{"type":"StringEntry","value":"a"},"domain":"PROVIDER"`: "VCD_META_CRUD_INVALID_FLAG",
	} {
		c.refused(http.MethodPost, path, `{"readOnly":true,"keyValue":{"key":"other","value":`+value+`}}`, 400, code)
	}
	c.Expect(c.call(http.MethodDelete, one, "").status).To(Equal(http.StatusAccepted), "a task, as documented")
	c.Expect(c.get(path).json["resultTotal"]).To(BeEquivalentTo(0))
}

func TestAccessControlsOfAnEntity(t *testing.T) {
	c := start(t)
	id := c.clusterEntity()
	path := "/cloudapi/1.0.0/entities/" + id + "/accessControls"
	grant := `{"grantType":"MembershipAccessControlGrant","accessLevelId":"urn:vcloud:accessLevel:LEVEL","memberId":"urn:vcloud:user:x"}`

	made := c.call(http.MethodPost, path, grant)
	c.Expect(made.status).To(Equal(http.StatusCreated), "%s", made.body)
	c.Expect(made.json).To(HaveKeyWithValue("objectId", id))
	one, _ := made.json["id"].(string)
	c.Expect(c.get(path).json["resultTotal"]).To(BeEquivalentTo(1))
	c.Expect(c.get(path + "/" + one).json).To(Equal(made.json))
	c.refused(http.MethodPost, path, `{"grantType":"MembershipAccessControlGrant"}`, 400, "BAD_REQUEST")

	c.Expect(c.call(http.MethodPut, path+"/"+one, grant).status).To(Equal(http.StatusOK))
	c.Expect(c.call(http.MethodDelete, path+"/"+one, "").status).To(Equal(http.StatusNoContent))
	c.refused(http.MethodGet, path+"/"+one, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}
