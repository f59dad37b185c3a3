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

// maxMessage is the length of the longest message of an event, in bytes.
const maxMessage = 1000

// Reasons of events of Services and of the pod. The page of events is made from these comments.
const (
	// reasonRefused means that the cloud refused a step.
	reasonRefused = "LoadBalancerRejected"
	// reasonLeft means that something cannot be removed where the load balancer was before.
	reasonLeft = "LoadBalancerOrphaned"
	// reasonStays means that something cannot be removed with the Service until a user acts.
	reasonStays = "LoadBalancerNotDeleted"
	// reasonOrphans means that no Service owns load balancers that have the cluster's id.
	reasonOrphans = "OrphanedLoadBalancers"
	// reasonManifest means that rights of the release's manifest were not applied.
	reasonManifest = "ManifestOutdated"
	// reasonPlan means that the Service is a dry run: the message lists what would be done.
	reasonPlan = "LoadBalancerPlanned"
	// reasonHealed means that the Service has what it asks for after it was refused.
	reasonHealed = "LoadBalancerRecovered"
	// reasonBack means that the cloud can be used again.
	reasonBack = "CloudReachable"
)

// Reasons of events of Nodes.
const (
	// reasonElsewhere means that the machine of the Node is where the configuration lets nothing be read.
	reasonElsewhere = "MachineOutOfScope"
	// reasonNotSeen means that the machine of the Node is proved missing: the Node is deleted if it stays so.
	reasonNotSeen = "MachineMissing"
	// reasonHeldBack means that too many machines are missing together: the Node is not deleted yet.
	reasonHeldBack = "TooManyMachinesMissing"
	// reasonHidden means that the cloud does not show the machine of a new Node, which waits.
	reasonHidden = "MachineNotVisible"
	// reasonAmbiguous means that several machines may be the Node's, which waits.
	reasonAmbiguous = "MachineAmbiguous"
)

// An eventDeduper emits each event of a Service once as long as it holds.
type eventDeduper struct {
	recorder record.EventRecorder
	sent     perService[sentEvents]
}

// sentEvents are the events of a Service that hold, as texts.
type sentEvents struct {
	// refusals hold until the Service has what it asks for.
	refusals map[string]bool
	// notices hold until those of their topic are reported again without them.
	notices map[string][]string
}

// refusals are emitted once, until the Service has what it asks for.
func (e *eventDeduper) refusals(s *corev1.Service, findings []loadbalancer.Finding) {
	for _, f := range findings {
		if e.firstRefusal(s.UID, textOf(f)) {
			e.recorder.Event(s, corev1.EventTypeWarning, f.Reason, cut(f.Message))
		}
	}
}

// firstRefusal reports whether a text is new, and stores it.
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

// notices reports all that is to be noticed on a topic now. Each is emitted once as long as it holds: what is reported
// no more has ended, and is emitted again when it returns.
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

// healed forgets refusals, and emits an event if there were any.
func (e *eventDeduper) healed(s *corev1.Service) {
	n := 0
	e.sent.change(s.UID, func(sent *sentEvents) {
		n = len(sent.refusals)
		sent.refusals = nil
	})
	if n > 0 {
		e.recorder.Event(s, corev1.EventTypeNormal, reasonHealed, "The load balancer is what the Service asks for")
	}
}

// refusalReasons returns why a Service does not have what it asks for.
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

// dryRun emits what would be done.
func (e *eventDeduper) dryRun(s *corev1.Service, p loadbalancer.Plan) {
	var lines []string
	for _, f := range p.Refusals {
		lines = append(lines, "refused, "+f.Reason+": "+f.Message)
	}
	for _, f := range p.Stuck {
		lines = append(lines, "stuck, "+f.Reason+": "+f.Message)
	}
	lines = append(lines, texts(p.Steps)...)
	if len(lines) == 0 {
		lines = []string{"nothing to do"}
	}
	text := "Dry run, nothing is changed; it would be done: " + strings.Join(lines, "; ")
	if e.firstRefusal(s.UID, text) {
		klog.InfoS("Dry run of a load balancer", "service", klog.KObj(s), "plan", lines)
		e.recorder.Event(s, corev1.EventTypeNormal, reasonPlan, cut(text))
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
