// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/record"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

func TestANoticeIsRepeatedWhenItsConditionRecurs(t *testing.T) {
	g := NewWithT(t)
	recorder := record.NewFakeRecorder(100)
	e := eventDeduper{recorder: recorder}
	s := balanced("web")
	noticed := func(topic string, messages ...string) int {
		var findings []loadbalancer.Finding
		for _, message := range messages {
			findings = append(findings, loadbalancer.Finding{Reason: "Noticed", Message: message})
		}
		before := len(recorder.Events)
		e.notices(s, topic, findings)
		return len(recorder.Events) - before
	}

	g.Expect(noticed("plan", "a", "b")).To(Equal(2))
	g.Expect(noticed("plan", "a", "b")).To(BeZero(), "both hold")
	g.Expect(noticed("service", "a")).To(Equal(1), "another topic")
	g.Expect(noticed("plan", "b")).To(BeZero(), "one condition has ended")
	g.Expect(noticed("plan", "a", "b")).To(Equal(1), "it has recurred")
}

func TestEndedNoticesAreForgotten(t *testing.T) {
	g := NewWithT(t)
	e := eventDeduper{recorder: record.NewFakeRecorder(1000)}
	s := balanced("web")

	for n := range 500 {
		e.notices(s, "plan", []loadbalancer.Finding{{Reason: "Noticed", Message: fmt.Sprint(n)}})
	}
	g.Expect(e.sent.get(s.UID).notices).To(Equal(map[string][]string{"plan": {"Noticed: 499"}}))

	e.notices(s, "plan", nil)
	g.Expect(e.sent.get(s.UID).notices).To(BeEmpty())
}
