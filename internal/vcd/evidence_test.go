// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/api"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/urn"
)

func TestAMissingOrganizationIsNoEvidence(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"it is invisible": func(w http.ResponseWriter, _ *http.Request) { reply(w, `<QueryResultRecords total="0"/>`) },
		"organizations must not be listed": func(w http.ResponseWriter, _ *http.Request) {
			xmlError(w, http.StatusForbidden, "ACCESS_TO_RESOURCE_IS_FORBIDDEN", "no")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			f.passwords["administrator@System"] = password
			f.on("POST /cloudapi/1.0.0/sessions/provider", f.serveLogin)
			f.on("GET /api/query?type=organization", answer)
			config := f.config()
			config.Credentials.Username = "System/administrator"
			s, err := NewPool(PoolOptions{}).Session(t.Context(), config)
			g.Expect(err).NotTo(HaveOccurred())

			_, err = s.VMs.VM(t.Context(), testVM)

			_, lookup := errors.AsType[*LookupError](err)
			seen, evidence := shown(err)
			g.Expect(seen).To(BeFalse())
			g.Expect(evidence).To(MatchError(ErrInvalid))
			g.Expect(lookup).To(BeFalse())
			g.Expect(err).To(MatchError(ContainSubstring("organization acme")))
		})
	}
}

func TestAResponseWithoutATaskIsNotASuccess(t *testing.T) {
	const op = "POST /api/vApp/vm-{id}/power/action/powerOn"
	const remove = "DELETE /cloudapi/1.0.0/ssl/certificateLibrary/{id}"
	tests := []struct {
		name, body string
		status     int
		xml, json  bool // whether it is a valid response of that API
	}{
		{"no content", "", http.StatusNoContent, false, true},
		{"an empty success", "", http.StatusOK, false, true},
		{"JSON", `{"id":"x"}`, http.StatusOK, false, true},
		{"a page of another server in front of VCD", `<html><body>Please log in</body></html>`, http.StatusOK, false, false},
		{"a task without id and address", `<Task status="running"/>`, http.StatusAccepted, false, false},
		{"accepted without a task", "", http.StatusAccepted, false, false},
		{"a partial response", `{"id":"x"}`, http.StatusPartialContent, false, false},
		{"a task", fmt.Sprintf(`<Task status="running" id="%s"/>`, testTask), http.StatusAccepted, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			answer := func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				if tt.body != "" {
					reply(w, "%s", tt.body)
				}
			}
			f.on(op, answer)
			f.on(remove, answer)
			s := session(t, f)

			_, errXML := s.VMs.PowerOn(t.Context(), testVM)
			path := certificatesPath + "/" + urn.UUID(testVM)
			_, errJSON := startJSON(t.Context(), s.client, http.MethodDelete, path, nil)

			g.Expect(errXML == nil).To(Equal(tt.xml), "%v", errXML)
			g.Expect(errJSON == nil).To(Equal(tt.json), "%v", errJSON)
			for _, err := range []error{errXML, errJSON} {
				if err != nil {
					g.Expect(err).To(MatchError(ErrUnavailable), "the request may be in progress")
				}
			}
		})
	}
}

func TestATaskWithoutIDDoesNotBlockOthers(t *testing.T) {
	g := NewWithT(t)
	f := newTaskServer(t)
	s := session(t, f.fakeVCD)
	woken := make(chan string, 2)

	s.Tasks.Follow("none", Task{}, func() { woken <- "none" })
	f.set(taskID(1), "success")
	s.Tasks.Follow("one", Task{ID: taskID(1), Owner: testVM}, func() { woken <- "one" })

	g.Eventually(woken).Should(Receive(Equal("none")))
	g.Eventually(woken).Should(Receive(Equal("one")))
	task, _ := s.Tasks.Task("none")
	g.Expect(task.State).To(Equal(TaskUnknown))
	g.Expect(f.rounds()).To(HaveEach(1))
}

func TestTheWholeTaskLogIsRead(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	const total = api.PageSize + 1
	f.on(opQueryTask, func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.URL.Query().Get("sortAsc")).To(Equal("startDate"))
		page, err := strconv.Atoi(r.URL.Query().Get("page"))
		g.Expect(err).NotTo(HaveOccurred())
		reply(w, `<QueryResultRecords total="%d" page="%d">`, total, page)
		for i := (page - 1) * api.PageSize; i < min(total, page*api.PageSize); i++ {
			name := "vappUpdateVm"
			if i == total-1 {
				name = "vappDeleteVm"
			}
			reply(w, `<TaskRecord name="%s" status="success" href="https://x/api/task/%s" `+
				`object="https://x/api/vApp/vm-%s"/>`, name, urn.UUID(taskID(i)), urn.UUID(testVM))
		}
		reply(w, `</QueryResultRecords>`)
	})
	s := session(t, f)
	var a Absence

	g.Expect(s.observeLog(t.Context(), Lost{ID: testVM}, &a)).To(Succeed())

	g.Expect(a).To(Equal(Absence{Logged: true, Deleted: true}))
}

func TestATaskLogThatGrowsWhileItIsReadIsComplete(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	total := 2 * api.PageSize
	f.on(opQueryTask, func(w http.ResponseWriter, r *http.Request) {
		page, err := strconv.Atoi(r.URL.Query().Get("page"))
		g.Expect(err).NotTo(HaveOccurred())
		reply(w, `<QueryResultRecords total="%d" page="%d">`, total, page)
		for i := (page - 1) * api.PageSize; i < min(total, page*api.PageSize); i++ {
			reply(w, `<TaskRecord name="vappUpdateVm" status="success" href="https://x/api/task/%s"/>`, urn.UUID(taskID(i)))
		}
		reply(w, `</QueryResultRecords>`)
		total++ // Someone in the organization starts a task.
	})

	tasks, err := session(t, f).Tasks.Since(t.Context(), time.Now())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(tasks)).To(BeNumerically(">=", 2*api.PageSize))
	g.Expect(f.count(opQueryTask)).To(Equal(2))
}

func TestOneAddressMayHaveIdenticalUses(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	const line = `{"ipAddress":"203.0.113.9","category":"DNAT","networkRef":{"id":"n"}}`
	f.on("GET /cloudapi/1.0.0/edgeGateways/{id}/usedIpAddresses", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `{"resultTotal":2,"values":[%s,%s]}`, line, line)
	})

	g.Expect(session(t, f).Gateways.UsedAddresses(t.Context(), testGateway)).To(HaveLen(2))
}
