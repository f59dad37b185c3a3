// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// TestConcurrentClients makes 64 clients read and write concurrently on shared vApps, while the state is read, edited
// and dumped. The race detector must stay silent, no response may be a 5xx, and the simulator must be idle and
// consistent at the end.
func TestConcurrentClients(t *testing.T) {
	const clients, rounds = 64, 4
	c := start(t, func(cfg *vcdsim.Config) { cfg.Guest = &fakeGuest{} })
	if transport, ok := c.http.Transport.(*http.Transport); ok {
		transport.MaxIdleConnsPerHost = clients
	}
	var vms []string
	for i := range 4 {
		vapp := c.vapp(fmt.Sprintf("shared-%d", i))
		vms = append(vms, c.vm(vapp, fmt.Sprintf("node-%d", i)))
	}
	stop := make(chan struct{})
	var watchers, all sync.WaitGroup
	for _, watch := range []func(){
		func() { _ = c.sim.State() },
		func() { _ = c.sim.Dump(io.Discard) },
		func() { _ = c.sim.Requests() },
		func() { _ = c.sim.Counters() },
		func() { c.sim.Edit(func(e *vcdsim.Editor) { e.VM("node-0").Description = "edited" }) },
	} {
		watchers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
					watch()
				}
			}
		})
	}
	var mu sync.Mutex
	statuses := map[int]int{}
	for n := range clients {
		all.Go(func() {
			for i := range rounds {
				for _, call := range concurrentCalls(c, vms[(n+i)%len(vms)], n, i) {
					res, err := c.http.Do(c.request(call[0], call[1], call[2]))
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					mu.Lock()
					statuses[res.StatusCode]++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	close(stop)
	watchers.Wait()

	t.Log(statuses)
	for status := range statuses {
		c.Expect(status).To(BeNumerically("<", 500))
	}
	c.Expect(statuses[http.StatusOK]).To(BeNumerically(">", clients*rounds*3))
	c.Expect(statuses[http.StatusAccepted]).To(BeNumerically(">", clients))
	c.Eventually(func() int { return len(c.records("type=task&filter=status==running,status==queued")) }).Should(
		BeZero())
	c.Expect(c.records("type=vm&filter=isVAppTemplate==false")).To(HaveLen(len(vms)))
	c.Expect(c.get("/api/query?type=disk").xml.Attr("total")).To(Equal(strconv.Itoa(clients * rounds)))
	c.Expect(c.sim.Unhandled()).To(BeEmpty())
}

// concurrentCalls makes the calls of one client in one round.
func concurrentCalls(c *client, vm string, client, round int) [][3]string {
	power := []string{"powerOn", "powerOff", "reset", "suspend"}[(client+round)%4]
	disk := fmt.Sprintf("disk-%d-%d", client, round)
	return [][3]string{
		{http.MethodGet, "/api/query?type=vm&filter=isVAppTemplate==false&links=true", ""},
		{http.MethodGet, vm, ""},
		{http.MethodPost, vm + "/power/action/" + power, ""},
		{http.MethodPost, vm + "/action/reconfigureVm", userdata},
		{http.MethodGet, "/cloudapi/1.0.0/orgVdcNetworks?page=1&pageSize=32", ""},
		{
			http.MethodPost,
			c.vdc() + "/disk",
			`<DiskCreateParams ` + xmlns + `><Disk name="` + disk + `" sizeMb="1024"/></DiskCreateParams>`,
		},
		{http.MethodPut, vm + "/metadata/k", strings.ReplaceAll(metadataValue, "VALUE", disk)},
		{http.MethodGet, "/api/query?type=task&pageSize=10", ""},
	}
}

const metadataValue = `<MetadataValue ` + xmlns + ` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><TypedValue xsi:type="MetadataStringValue"><Value>VALUE</Value></TypedValue></MetadataValue>`
