// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheAuditTrailHasLoginsAndTasksVisibleToTheCaller(t *testing.T) {
	c := start(t).user("admin")
	c.vapp("cluster")
	var kinds []any
	for _, e := range c.values("auditTrail?sortAsc=timestamp") {
		c.Expect(e["operatingOrg"]).To(HaveKeyWithValue("name", "acme"))
		kinds = append(kinds, e["eventType"])
	}
	c.Expect(kinds).To(ContainElements("com/vmware/vcloud/event/session/login", "com/vmware/vcloud/event/task/create",
		"com/vmware/vcloud/event/task/complete"))

	provider := c.provider()
	all := provider.values("auditTrail?pageSize=128")
	c.Expect(len(all)).To(BeNumerically(">", len(kinds)), "the provider can see its own logins, too")
	last := all[len(all)-1]["timestamp"].(string)
	c.Expect(provider.values("auditTrail?filter=timestamp=gt=" + last)).To(BeEmpty())
	c.refused(http.MethodPost, cloudAPI+"auditTrail", "{}", 405, "METHOD_NOT_ALLOWED")
}
