package cpi

import (
	"fmt"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

const (
	// reasonRefused is for steps that the cloud refused.
	reasonRefused = "LoadBalancerRefused"
	// reasonLeft is for what cannot be removed where a load balancer was before.
	reasonLeft = "LoadBalancerLeftBehind"
	// reasonStays is for what cannot be removed with its Service until somebody does something.
	reasonStays = "LoadBalancerStays"
	// reasonOrphans is for load balancers that no Service owns.
	reasonOrphans = "LoadBalancersWithoutService"
	// reasonPlan is for plans of dry runs.
	reasonPlan = "LoadBalancerPlan"
	// reasonHealed is for wishes that can be met again.
	reasonHealed = "LoadBalancerCorrected"
	// longest is how long the message of an event may be.
	longest = 1000
)

// A teller tells of wishes that cannot be met, as events, each once as long as it is so.
type teller struct {
	recorder record.EventRecorder

	mu   sync.Mutex
	told map[types.UID]map[string]bool // texts; true for refusals
}

// refusals are told once, until the Service has what it asks for.
func (t *teller) refusals(s *corev1.Service, findings []lb.Finding) { t.tell(s, findings, true) }

// notices are told once.
func (t *teller) notices(s *corev1.Service, findings []lb.Finding) { t.tell(s, findings, false) }

func (t *teller) tell(s *corev1.Service, findings []lb.Finding, refused bool) {
	for _, f := range findings {
		if text := f.Reason + ": " + f.Message; t.first(s.UID, text, refused) {
			t.recorder.Event(s, corev1.EventTypeWarning, f.Reason, cut(f.Message))
		}
	}
}

// first says whether something was not told yet.
func (t *teller) first(uid types.UID, text string, refused bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.told == nil {
		t.told = map[types.UID]map[string]bool{}
	}
	if t.told[uid] == nil {
		t.told[uid] = map[string]bool{}
	}
	if _, told := t.told[uid][text]; told {
		return false
	}
	t.told[uid][text] = refused
	return true
}

// healed forgets what was refused, and says so if there was anything.
func (t *teller) healed(s *corev1.Service) {
	t.mu.Lock()
	n := 0
	for text, refused := range t.told[s.UID] {
		if refused {
			delete(t.told[s.UID], text)
			n++
		}
	}
	t.mu.Unlock()
	if n > 0 {
		t.recorder.Event(s, corev1.EventTypeNormal, reasonHealed, "The load balancer is what the Service asks for")
	}
}

func (t *teller) forget(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.told, uid)
}

// keep forgets all but some.
func (t *teller) keep(some map[types.UID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.told, func(uid types.UID, _ map[string]bool) bool { return !some[uid] })
}

// plan tells what would be done.
func (t *teller) plan(s *corev1.Service, plan lb.Plan) {
	var lines []string
	for _, f := range plan.Refusals {
		lines = append(lines, "refused, "+f.Reason+": "+f.Message)
	}
	for _, f := range plan.Stuck {
		lines = append(lines, "stuck, "+f.Reason+": "+f.Message)
	}
	lines = append(lines, texts(plan.Steps)...)
	if len(lines) == 0 {
		lines = []string{"nothing to do"}
	}
	text := fmt.Sprintf("Dry run, nothing is changed; it would be done: %s", strings.Join(lines, "; "))
	if t.first(s.UID, text, true) {
		klog.InfoS("Dry run of a load balancer", "service", klog.KObj(s), "plan", lines)
		t.recorder.Event(s, corev1.EventTypeNormal, reasonPlan, cut(text))
	}
}

func cut(s string) string {
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + " …"
}
