package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestAccessControlsOfAnEntity(t *testing.T) {
	c := start(t)
	const types = "/cloudapi/1.0.0/entityTypes/urn:vcloud:type:vmware:capvcdCluster:1.1.0"
	task := c.call(http.MethodPost, types,
		`{"name":"cluster","entity":{"kind":"CAPVCDCluster"}}`).header.Get("Location")
	id := "urn:vcloud:entity:vmware:capvcdCluster:" +
		c.get(task).xml.At("Owner").Attr("href")[len(c.get(task).xml.At("Owner").Attr("href"))-36:]
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
