// SPDX-License-Identifier: Apache-2.0

package cpi

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// maxMessage is the maximum length of an event message, in bytes.
const maxMessage = 1000

// Reasons of events of Services and of the pod. The events page of the documentation is generated from these comments.
const (
	// reasonRejected means that the cloud rejected a step.
	reasonRejected = "LoadBalancerRejected"
	// reasonOrphaned means that objects at the previous location of the load balancer cannot be removed.
	reasonOrphaned = "LoadBalancerOrphaned"
	// reasonNotDeleted means that objects of a deleted Service cannot be removed until a user acts.
	reasonNotDeleted = "LoadBalancerNotDeleted"
	// reasonOrphans means that load balancers with the ID of the cluster have no Service.
	reasonOrphans = "OrphanedLoadBalancers"
	// reasonManifest means that permissions of the release's manifest are missing.
	reasonManifest = "ManifestOutdated"
	// reasonPlanned means that the Service is a dry run: the message lists the planned steps.
	reasonPlanned = "LoadBalancerPlanned"
	// reasonRecovered means that the load balancer matches the Service again after a rejection.
	reasonRecovered = "LoadBalancerRecovered"
	// reasonWaiting means that the load balancer waits until others at its location are reconciled.
	reasonWaiting = "LoadBalancerWaiting"
	// reasonReachable means that the cloud is available again.
	reasonReachable = "CloudReachable"
)

// Reasons of events of Nodes.
const (
	// reasonOutOfScope means that the machine of the Node is at a location outside the configuration.
	reasonOutOfScope = "MachineOutOfScope"
	// reasonMissing means that the machine of the Node is proved missing: the Node is deleted if the machine stays
	// missing.
	reasonMissing = "MachineMissing"
	// reasonTooManyMissing means that too many machines are missing at the same time, so the Node is not deleted yet.
	reasonTooManyMissing = "TooManyMachinesMissing"
	// reasonNotVisible means that the machine of a new Node is not visible in the cloud, so the Node waits.
	reasonNotVisible = "MachineNotVisible"
	// reasonAmbiguous means that several machines match the Node, so it waits.
	reasonAmbiguous = "MachineAmbiguous"
)

// An eventDeduper emits each event of a Service only once while its cause lasts.
type eventDeduper struct {
	recorder record.EventRecorder
	sent     perService[sentEvents]
}

// sentEvents are the emitted events of a Service whose causes last, as texts.
type sentEvents struct {
	// refusals last until the load balancer matches the Service.
	refusals map[string]bool
	// notices last until their topic is reported again without them.
	notices map[string][]string
	// waits lasts until the Service gets a slot at its location.
	waits bool
}

// refusals emits each refusal once, until the load balancer matches the Service.
func (e *eventDeduper) refusals(s *corev1.Service, findings []loadbalancer.Finding) {
	for _, f := range findings {
		if e.firstRefusal(s.UID, textOf(f)) {
			e.recorder.Event(s, corev1.EventTypeWarning, f.Reason, cut(f.Message))
		}
	}
}

// firstRefusal reports whether a text is new, and records it.
func (e *eventDeduper) firstRefusal(uid types.UID, text string) (first bool) {
	e.sent.change(uid, func(sent *sentEvents) {
		if sent.refusals == nil {
			sent.refusals = map[string]bool{}
		}
		first = !sent.refusals[text]
		sent.refusals[text] = true
	})
	return first
}

// notices reports all current findings of a topic. Each finding is emitted once while it lasts. If it disappears from
// the reports and returns, it is emitted again.
func (e *eventDeduper) notices(s *corev1.Service, topic string, findings []loadbalancer.Finding) {
	var texts []string
	var fresh []loadbalancer.Finding
	e.sent.change(s.UID, func(sent *sentEvents) {
		before := sent.notices[topic]
		for _, f := range findings {
			text := textOf(f)
			if !slices.Contains(before, text) && !slices.Contains(texts, text) {
				fresh = append(fresh, f)
			}
			texts = append(texts, text)
		}
		sent.notices = maps.Clone(sent.notices)
		delete(sent.notices, topic)
		if len(texts) > 0 {
			if sent.notices == nil {
				sent.notices = map[string][]string{}
			}
			sent.notices[topic] = texts
		}
	})
	for _, f := range fresh {
		e.recorder.Event(s, corev1.EventTypeWarning, f.Reason, cut(f.Message))
	}
}

func textOf(f loadbalancer.Finding) string { return f.Reason + ": " + f.Message }

// recovered drops the recorded refusals, and emits an event if there were any.
func (e *eventDeduper) recovered(s *corev1.Service) {
	n := 0
	e.sent.change(s.UID, func(sent *sentEvents) {
		n = len(sent.refusals)
		sent.refusals = nil
	})
	if n > 0 {
		e.recorder.Event(s, corev1.EventTypeNormal, reasonRecovered, "The load balancer matches the Service again")
	}
}

// waiting emits an event when the Service begins to wait for other load balancers at a location.
func (e *eventDeduper) waiting(s *corev1.Service, where string) {
	first := false
	e.sent.change(s.UID, func(sent *sentEvents) {
		first = !sent.waits
		sent.waits = true
	})
	if first {
		e.recorder.Event(s, corev1.EventTypeNormal, reasonWaiting,
			cut("Waiting for other load balancers at "+where+": those that came first are reconciled first"))
	}
}

// admitted records that the Service has a slot at its location.
func (e *eventDeduper) admitted(s *corev1.Service) {
	e.sent.change(s.UID, func(sent *sentEvents) { sent.waits = false })
}

// refusalReasons returns the reasons why the load balancer does not match the Service.
func (e *eventDeduper) refusalReasons(uid types.UID) map[string]bool {
	reasons := map[string]bool{}
	e.sent.view(uid, func(sent sentEvents) {
		for text := range sent.refusals {
			if reason, _, ok := strings.Cut(text, ": "); ok {
				reasons[reason] = true
			}
		}
	})
	return reasons
}

// dryRun emits the plan of a dry run.
func (e *eventDeduper) dryRun(s *corev1.Service, p loadbalancer.Plan) {
	var lines []string
	for _, f := range p.Refusals {
		lines = append(lines, "rejected, "+f.Reason+": "+f.Message)
	}
	for _, f := range p.Stuck {
		lines = append(lines, "stuck, "+f.Reason+": "+f.Message)
	}
	lines = append(lines, texts(p.Steps)...)
	if len(lines) == 0 {
		lines = []string{"nothing to do"}
	}
	text := "Dry run, nothing was changed. Planned steps: " + strings.Join(lines, "; ")
	if e.firstRefusal(s.UID, text) {
		klog.InfoS("Dry run of a load balancer", "service", klog.KObj(s), "plan", lines)
		e.recorder.Event(s, corev1.EventTypeNormal, reasonPlanned, cut(text))
	}
}

func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage], "") + " …"
}

func texts(steps []loadbalancer.Step) []string {
	out := make([]string, 0, len(steps))
	for _, s := range steps {
		out = append(out, s.String())
	}
	return out
}
