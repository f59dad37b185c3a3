// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

func TestAPassWaitsUntilTheCacheContainsTheLastWrite(t *testing.T) {
	later := ctrl.Result{RequeueAfter: cacheDelay}
	for name, tt := range map[string]struct {
		version func(outdated, written string) string
		elapsed time.Duration
		want    ctrl.Result
		passes  int
	}{
		"an outdated object": {
			version: func(outdated, _ string) string { return outdated },
			want:    later,
			passes:  1,
		},
		"the written object": {
			version: func(_, written string) string { return written },
			passes:  2,
		},
		"a newer object": {
			version: func(_, written string) string { return written + "0" },
			passes:  2,
		},
		"a resource version that cannot be compared": {
			version: func(string, string) string { return "unknown" },
			passes:  2,
		},
		"an outdated object while the watch is down": {
			version: func(outdated, _ string) string { return outdated },
			elapsed: awaitedFor + time.Second,
			passes:  2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachines(t, newMachine())
			clock := testingclock.NewFakePassiveClock(time.Now())
			passes := 0
			reconciler := Reconciler[*infrav1.VCDMachine, facts]{
				Client:   m.Client,
				Recorder: events.NewFakeRecorder(9),
				Writes:   newWrites(clock),
				Open: func(context.Context, *infrav1.VCDMachine, *Patcher) (Entry[facts], error) {
					passes++
					return Entry[facts]{Scope: &facts{}}, nil
				},
				Phases: []Phase[*facts]{{
					Condition: "Own",
					Run:       func(context.Context, *facts) (Result, error) { return Wait(0, "Reason", "message"), nil },
				}},
			}
			read := &infrav1.VCDMachine{}
			g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(newMachine()), read)).To(Succeed())
			outdated := read.DeepCopy()
			_, err := reconciler.Reconcile(t.Context(), read)
			g.Expect(err).NotTo(HaveOccurred())
			written := &infrav1.VCDMachine{}
			g.Expect(m.Client.Get(t.Context(), client.ObjectKeyFromObject(read), written)).To(Succeed())
			g.Expect(written.ResourceVersion).NotTo(Equal(outdated.ResourceVersion))

			clock.SetTime(clock.Now().Add(tt.elapsed))
			next := outdated.DeepCopy()
			next.ResourceVersion = tt.version(outdated.ResourceVersion, written.ResourceVersion)
			result, _ := reconciler.Reconcile(t.Context(), next)

			g.Expect(result).To(Equal(tt.want))
			g.Expect(passes).To(Equal(tt.passes))
		})
	}
}

func TestWritesOfOneObjectDoNotDelayAnother(t *testing.T) {
	g := NewWithT(t)
	writes := NewWrites()
	writes.remember(&infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: "7"}})

	g.Expect(writes.reached(&infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{UID: "b", ResourceVersion: "3"}})).To(BeTrue())
	g.Expect(writes.reached(&infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{UID: "a", ResourceVersion: "3"}})).To(BeFalse())
}
