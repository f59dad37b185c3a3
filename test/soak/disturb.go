// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A trouble is a kind of fault of a site.
type trouble struct {
	name string
	rule vcdsim.Fault
}

// troubles returns all kinds of faults. Most concern a part of the requests, so that work goes on.
func troubles() []trouble {
	return []trouble{
		{"slow responses", vcdsim.Fault{Probability: 0.3, Delay: 20 * time.Second}},
		{"slow bodies", vcdsim.Fault{Operation: "GET *", Probability: 0.2, SlowBody: 20 * time.Second}},
		{"internal errors", vcdsim.Fault{Probability: 0.2, Status: http.StatusInternalServerError}},
		{"unavailable", vcdsim.Fault{Status: http.StatusServiceUnavailable, Body: vcdsim.BodyHTML}},
		{
			"too many requests",
			vcdsim.Fault{
				Probability: 0.3,
				Status:      http.StatusTooManyRequests,
				Header:      map[string]string{"Retry-After": "2"},
			},
		},
		{"bad gateway", vcdsim.Fault{Probability: 0.3, Status: http.StatusBadGateway, Body: vcdsim.BodyEmpty}},
		{"connections closed before the work", vcdsim.Fault{Probability: 0.2, DropBefore: true}},
		{"lost responses", vcdsim.Fault{Probability: 0.2, DropAfter: true}},
		{"lost responses to writes", vcdsim.Fault{Operation: "POST *", Probability: 0.5, DropAfter: true}},
		{"truncated responses", vcdsim.Fault{Probability: 0.2, Truncate: true}},
		{"busy entities", vcdsim.Fault{Operation: "POST /api/*", Probability: 0.5, Busy: vcdsim.BusyTenant}},
		{"busy gateways", vcdsim.Fault{Operation: "P* /cloudapi/*", Probability: 0.5, Busy: vcdsim.BusyProvider}},
		{"failed tasks", vcdsim.Fault{Probability: 0.3, FailTask: true, Message: "The simulator fails this task."}},
		{"aborted tasks", vcdsim.Fault{Probability: 0.3, AbortTask: true}},
		{"stuck tasks", vcdsim.Fault{Probability: 0.3, StickTask: true, Delay: 5 * time.Minute}},
		{"ended sessions", vcdsim.Fault{Probability: 0.05, EndSession: true}},
		{
			"empty queries of VMs",
			vcdsim.Fault{
				Operation: "GET /api/query type=vm",
				Status:    http.StatusOK,
				Body:      vcdsim.BodyNothing,
			},
		},
	}
}

// disturb executes a disturbance and returns when it has ended.
func (w *world) disturb(ctx context.Context, e event) error {
	s := w.sites[e.Site]
	switch e.Action { //nolint:exhaustive // the others are actions of users
	case actFault:
		chosen := troubles()[e.Number%len(troubles())]
		w.logf("site %d: %s for %s", e.Site, chosen.name, e.For.Round(time.Second))
		id := s.Faults().Add(chosen.rule)
		w.wait(ctx, e.For)
		s.Faults().Remove(id)
	case actCellDown:
		cell := s.Cells()[e.Number%cells]
		w.logf("site %d: cell %d is down for %s", e.Site, cell.Number, e.For.Round(time.Second))
		halt(cell, e.Number/cells%3)
		w.wait(ctx, e.For)
		cell.Maintain(false)
		cell.Start()
	case actKill:
		return w.kill(ctx, w.managers[e.Number%len(w.managers)], e.For)
	case actKillCCM:
		return w.killCCM(ctx, e)
	case actRotate:
		w.logf("site %d: credentials are rotated", e.Site)
		s.rotate()
		return w.distribute(ctx, s)
	case actUpgradeVCD:
		w.logf("site %d: cell %d is upgraded", e.Site, e.Number+1)
		return s.Cells()[e.Number].Upgrade(vcdsim.Version106)
	}
	return nil
}

// halt takes a cell down in one of three ways.
func halt(cell *vcdsim.Cell, way int) {
	switch way {
	case 0:
		cell.Stop()
	case 1:
		cell.Crash()
	default:
		cell.Maintain(true)
	}
}

// kill kills a manager, like a crash, and starts it again after a pause.
func (w *world) kill(ctx context.Context, m *manager, pause time.Duration) error {
	m.down.Lock()
	defer m.down.Unlock()
	w.logf("%s is killed for %s", m.Name(), pause.Round(time.Second))
	if err := m.Kill(); err != nil {
		return err
	}
	w.wait(ctx, pause)
	if err := m.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("starting %s after a kill: %w", m.Name(), err)
	}
	return nil
}

// killCCM kills a cloud controller manager, like a crash. Kubelets start it again after a pause.
func (w *world) killCCM(ctx context.Context, e event) error {
	w.mu.Lock()
	names := slices.Sorted(maps.Keys(w.ccms))
	if len(names) == 0 {
		w.mu.Unlock()
		return nil
	}
	c := w.ccms[names[e.Number%len(names)]]
	w.mu.Unlock()
	c.paused.Lock()
	defer c.paused.Unlock()
	w.logf("the CCM of %s is killed for %s", c.name, e.For.Round(time.Second))
	if err := c.kill(); err != nil {
		return err
	}
	w.wait(ctx, e.For)
	return nil
}

// wait waits for a simulated duration, or until the run is interrupted.
func (w *world) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(time.Duration(float64(d) / w.pace))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// distribute writes the current credentials of a site to all Secrets that have older ones.
func (w *world) distribute(ctx context.Context, s *site) error {
	list := &corev1.SecretList{}
	selected := client.MatchingLabels{siteLabel: fmt.Sprint(s.index)}
	if err := retryRequest(ctx, func() error { return w.client.List(ctx, list, selected) }); err != nil {
		return fmt.Errorf("listing the Secrets with credentials: %w", err)
	}
	var errs []error
	for i := range list.Items {
		secret := &list.Items[i]
		before := secret.DeepCopy()
		if len(secret.Data[infrav1.SecretPassword]) > 0 {
			secret.Data[infrav1.SecretPassword] = []byte(s.password())
		}
		if len(secret.Data[infrav1.SecretAPIToken]) > 0 {
			secret.Data[infrav1.SecretAPIToken] = []byte(s.token(secret.Labels[userLabel]))
		}
		errs = append(errs, retryRequest(ctx, func() error {
			return client.IgnoreNotFound(w.client.Patch(ctx, secret, client.MergeFrom(before)))
		}))
	}
	return errors.Join(errs...)
}

// calm ends all disturbances of the sites.
func (w *world) calm() {
	for _, s := range w.sites {
		s.Faults().Clear()
		for _, cell := range s.Cells() {
			cell.Maintain(false)
			cell.Start()
		}
	}
	w.cloudStack.calm()
}
