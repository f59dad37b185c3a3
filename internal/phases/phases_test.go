// SPDX-License-Identifier: Apache-2.0

package phases

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

var errBoom = errors.New("boom")

func TestRunPhases(t *testing.T) {
	ready := metav1.Condition{Status: metav1.ConditionTrue, Reason: infrav1.ReadyReason}
	blocked := metav1.Condition{
		Status:  metav1.ConditionUnknown,
		Reason:  infrav1.WaitingForEarlierPhaseReason,
		Message: "Waiting for Network",
	}

	tests := []struct {
		name       string
		network    Result
		err        error
		before     []metav1.Condition
		wantAfter  time.Duration
		wantErr    error
		wantEvents int
		want       map[string]metav1.Condition
	}{
		{
			name: "all phases complete",
			want: map[string]metav1.Condition{"Network": ready, "VM": ready, "Ready": ready},
		},
		{
			name:      "a waiting phase blocks later phases without an event",
			network:   Wait(10*time.Second, "TaskRunning", "Creating network %s", "n1"),
			wantAfter: 10 * time.Second,
			want: map[string]metav1.Condition{
				"Network": {Status: metav1.ConditionFalse, Reason: "TaskRunning", Message: "Creating network n1"},
				"VM":      blocked,
				"Ready": {
					Status:  metav1.ConditionFalse,
					Reason:  "TaskRunning",
					Message: "Network: Creating network n1",
				},
			},
		},
		{
			name:    "a retriable error keeps the known state",
			err:     errBoom,
			before:  []metav1.Condition{{Type: "Network", Status: metav1.ConditionTrue, Reason: infrav1.ReadyReason}},
			wantErr: errBoom,
			want:    map[string]metav1.Condition{"Network": ready, "VM": blocked},
		},
		{
			name:    "a new object whose first call fails is unknown",
			err:     errBoom,
			wantErr: errBoom,
			want: map[string]metav1.Condition{
				"Network": {
					Status:  metav1.ConditionUnknown,
					Reason:  infrav1.InternalErrorReason,
					Message: "Please check controller logs for errors",
				},
			},
		},
		{
			name:       "a stopped phase emits an event and is not retried",
			network:    Stop("NetworkNotFound", "There is no network %s", "n1"),
			wantEvents: 1,
			want: map[string]metav1.Condition{"Network": {
				Status:  metav1.ConditionFalse,
				Reason:  "NetworkNotFound",
				Message: "There is no network n1",
			}},
		},
		{
			name:    "a reported problem emits no event",
			network: Stop("NetworkNotFound", "There is no network n1"),
			before: []metav1.Condition{{
				Type:    "Network",
				Status:  metav1.ConditionFalse,
				Reason:  "NetworkNotFound",
				Message: "There is no network n1",
			}},
			want: map[string]metav1.Condition{"Network": {
				Status:  metav1.ConditionFalse,
				Reason:  "NetworkNotFound",
				Message: "There is no network n1",
			}},
		},
		{
			name:       "a phase without a result reports that",
			network:    Unsure(0, "SiteUnreachable", "VCD does not answer"),
			wantEvents: 1,
			want: map[string]metav1.Condition{
				"Network": {Status: metav1.ConditionUnknown, Reason: "SiteUnreachable", Message: "VCD does not answer"},
				"Ready": {
					Status:  metav1.ConditionUnknown,
					Reason:  "SiteUnreachable",
					Message: "Network: VCD does not answer",
				},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := &infrav1.VCDCluster{}
			obj.Status.Conditions = tt.before
			recorder := events.NewFakeRecorder(10)
			phases := []Phase[*infrav1.VCDCluster]{
				{
					Condition: "Network",
					Run:       func(context.Context, *infrav1.VCDCluster) (Result, error) { return tt.network, tt.err },
				},
				{
					Condition: "VM",
					Run:       func(context.Context, *infrav1.VCDCluster) (Result, error) { return Done, nil },
				},
			}

			pass := run(t.Context(), obj, obj, phases, recorder)
			setReady(obj, phases)

			g.Expect(errors.Is(pass.Err, tt.wantErr)).To(BeTrue(), "%v", pass.Err)
			g.Expect(pass.After).To(Equal(tt.wantAfter))
			g.Expect(recorder.Events).To(HaveLen(tt.wantEvents))
			for condition, want := range tt.want {
				want.Type = condition
				g.Expect(conditions.Get(obj,
					condition)).To(HaveValue(conditions.MatchCondition(want,
					conditions.IgnoreLastTransitionTime(true))))
			}
			g.Expect(pass.Complete).To(Equal(conditions.IsTrue(obj, clusterv1.ReadyCondition)))
		})
	}
}

// The first problems of a new object are fixed while a user watches it.
func TestNewObjectsAreRetriedMoreOften(t *testing.T) {
	for _, tt := range []struct {
		name string
		age  time.Duration
		out  Result
		want time.Duration // with 20% jitter
	}{
		{"created just now", 0, Fail(RemedyPoll, "NetworkNotFound", ""), 20 * time.Second},
		{"after ten minutes", 10 * time.Minute, Fail(RemedyPoll, "NetworkNotFound", ""), 30 * time.Second},
		{"after an hour", time.Hour, Fail(RemedyPoll, "NetworkNotFound", ""), RemedyPoll},
		{"another delay", 0, Fail(10*time.Minute, "CredentialsRejected", ""), 10 * time.Minute},
		{"a shorter delay", 0, Fail(5*time.Second, "NetworkNotFound", ""), 5 * time.Second},
		{"no problem", 0, Wait(RemedyPoll, "TaskRunning", ""), RemedyPoll},
		{"a watch triggers it", 0, Stop("SecretNotFound", ""), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := &infrav1.VCDMachine{ObjectMeta: metav1.ObjectMeta{
				UID:               "1",
				CreationTimestamp: metav1.NewTime(time.Now().Add(-tt.age)),
			}}

			after := Report(obj, "Network", tt.out, events.NewFakeRecorder(10))

			g.Expect(after).To(And(BeNumerically(">=", tt.want), BeNumerically("<=", tt.want+tt.want/5)))
		})
	}
}
