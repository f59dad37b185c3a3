// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestManySimulatorsInOneProcess(t *testing.T) {
	for i := range 50 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.vm(c.vapp("cluster"), "node")
			c.Expect(c.get("/api/query?type=vm&filter=isVAppTemplate==false").xml.Attr("total")).To(Equal("1"),
				"no VMs of other organizations")
			c.Expect(c.call(http.MethodPost, "/_sim/faults", `{"status": 503}`).status).To(Equal(http.StatusCreated))
			c.Expect(c.call(http.MethodGet, "/api/org", "").status).To(Equal(http.StatusServiceUnavailable))
		})
	}
}
