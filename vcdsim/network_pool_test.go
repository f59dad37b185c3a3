// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

// centerID returns the ID of the vCenter.
func (c *client) centerID() string { return c.values("virtualCenters")[0]["vcId"].(string) }

// portGroups returns the names of the available port groups.
func (c *client) portGroups() []string {
	var out []string
	for _, x := range c.values("virtualCenters/resources/importableDvpgs") {
		out = append(out, x["backingRef"].(map[string]any)["name"].(string))
	}
	return out
}

// vlanPool creates a VLAN network pool and returns its path.
func (c *client) vlanPool(name string) string {
	return cloudAPI + "networkPools/" + c.make("networkPools", c.poolBody(name, "VLAN",
		`"vdsRefs":[{"id":"dvs-20"}],"vlanIdRanges":{"values":[{"startId":1,"endId":100}]}`))
}

func (c *client) poolBody(name, kind, backing string) string {
	return fmt.Sprintf(`{"name":%q,"poolType":%q,"managingOwnerRef":{"id":%q},"backing":{"providerRef":{"id":%q},%s}}`,
		name, kind, c.centerID(), c.centerID(), backing)
}

func TestNetworkPools(t *testing.T) {
	c := start(t).provider()
	path := c.vlanPool("vlans")
	c.Expect(c.get(path).json).To(And(
		HaveKeyWithValue("status", "REALIZED"), HaveKeyWithValue("totalBackingsCount", 100.0),
		HaveKeyWithValue("backing", HaveKeyWithValue("vdsRefs", ConsistOf(HaveKeyWithValue("name", "dvs1"))))))
	names := []any{}
	for _, x := range c.values("networkPools/networkPoolSummaries") {
		c.Expect(x).NotTo(HaveKey("backing"))
		names = append(names, x["name"])
	}
	c.Expect(names).To(Equal([]any{"provider-pool", "vlans"}))

	own := cloudAPI + "networkPools/" + c.values("networkPools/networkPoolSummaries")[0]["id"].(string)
	c.Expect(c.refused(http.MethodDelete, own, "", 400, "VALIDATION_ERROR")).To(ContainSubstring("provider VDC"))
	c.ok(http.MethodDelete, path, "")
	c.refused(http.MethodGet, path, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

func TestInvalidNetworkPools(t *testing.T) {
	c := start(t).provider()
	for reason, body := range map[string]string{
		"a distributed switch":        c.poolBody("p", "VLAN", `"vdsRefs":[{"id":"dvs-99"}]`),
		"range of VLAN IDs 5-4":       c.poolBody("p", "VLAN", `"vdsRefs":[{"id":"dvs-20"}],"vlanIdRanges":{"values":[{"startId":5,"endId":4}]}`),
		"needs a port group":          c.poolBody("p", "PORTGROUP_BACKED", `"portGroupRefs":[]`),
		`group "dvportgroup-99" does`: c.poolBody("p", "PORTGROUP_BACKED", `"portGroupRefs":[{"id":"dvportgroup-99"}]`),
		"GENEVE cannot be managed":    c.poolBody("p", "GENEVE", `"transportZoneRef":{"id":"x"}`),
		`type "WAVES" is invalid`:     c.poolBody("p", "WAVES", `"x":null`),
	} {
		c.Expect(c.refused(http.MethodPost, cloudAPI+"networkPools", body, 400, "BAD_REQUEST")).To(ContainSubstring(reason))
	}
	c.user("admin").refused(http.MethodPost, cloudAPI+"networkPools", "{}", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

func TestAPortGroupBelongsToOnePoolOrNetwork(t *testing.T) {
	c := start(t).provider()
	c.Expect(c.portGroups()).To(Equal([]string{"port-group", "port-group-2", "port-group-3"}))
	pool := c.make("networkPools", c.poolBody("groups", "PORTGROUP_BACKED", `"portGroupRefs":[{"id":"dvportgroup-21"}]`))
	imported := fmt.Sprintf(`{"name":"imported","networkType":"OPAQUE","backingNetworkType":"DV_PORTGROUP",`+
		`"backingNetworkId":"dvportgroup-22","ownerRef":{"id":%q},`+
		`"subnets":{"values":[{"gateway":"10.30.0.1","prefixLength":24}]}}`, c.vdcURN())
	network := c.make("orgVdcNetworks", imported)
	c.Expect(c.portGroups()).To(Equal([]string{"port-group-3"}))
	c.Expect(c.refused(http.MethodPost, cloudAPI+"networkPools",
		c.poolBody("more", "PORTGROUP_BACKED", `"portGroupRefs":[{"id":"dvportgroup-22"}]`), 400,
		"BAD_REQUEST")).To(ContainSubstring(`in use by the network "imported"`))

	c.ok(http.MethodDelete, cloudAPI+"networkPools/"+pool, "")
	c.ok(http.MethodDelete, cloudAPI+"orgVdcNetworks/"+network, "")
	c.Expect(c.portGroups()).To(HaveLen(3))
}

// logicalGroup creates a logical VM group and returns its path.
func (c *client) logicalGroup(name string) string {
	group := c.get("/api/query?type=vmGroups&filter=vmGroupName==rack-a-vms").xml.At("VmGroupsRecord").Attr("namedVmGroupId")
	pool := c.get("/api/query?type=resourcePool").xml.At("ResourcePoolRecord").Attr("providerVdc")
	provider := "urn:vcloud:providervdc:" + pool[len(pool)-36:]
	a := c.call(http.MethodPost, cloudAPI+"logicalVmGroups", fmt.Sprintf(
		`{"name":%q,"pvdcId":%q,"namedVmGroupReferences":[{"name":"rack-a-vms","id":"urn:vcloud:namedVmGroup:%s"}]}`, name,
		provider, group))
	c.Expect(a.status).To(Equal(http.StatusCreated), "%s", a.body)
	return cloudAPI + "logicalVmGroups/" + a.json["id"].(string)
}

func TestALogicalVMGroupIsKeptWhileAPolicyReferencesIt(t *testing.T) {
	c := start(t).provider()
	path := c.logicalGroup("rack-a")
	group := c.get(path).json
	policy := c.call(http.MethodPost, "/cloudapi/2.0.0/vdcComputePolicies", fmt.Sprintf(
		`{"name":"on-rack-a","policyType":"VdcVmPolicy","pvdcLogicalVmGroupsMap":[{"pvdc":{"id":%q},"logicalVmGroups":[{"id":%q}]}]}`,
		group["pvdcId"], group["id"]))
	c.Expect(policy.status).To(Equal(http.StatusCreated), "%s", policy.body)
	c.Expect(c.refused(http.MethodDelete, path, "", 400, "VALIDATION_ERROR")).To(ContainSubstring("compute policy on-rack-a"))

	c.Expect(c.call(http.MethodDelete, "/cloudapi/2.0.0/vdcComputePolicies/"+policy.json["id"].(string), "").status).To(Equal(204))
	c.Expect(c.call(http.MethodDelete, path, "").status).To(Equal(204))
}
