// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

var clusterKind = clusterv1.GroupVersion.WithKind("ClusterList")

// run executes a plan, and then judges: all clusters become ready, the sites rest, all clusters are deleted, and the
// sites are as before.
func (w *world) run(ctx context.Context, events []event) error {
	w.began = time.Now()
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	for _, s := range w.sites {
		watchers.Go(func() { w.watch(watching, s) })
	}
	w.ccms[cloudStackName] = w.cloudStack.controller
	watchers.Go(func() {
		if err := w.cloudStack.live(watching); err != nil {
			w.judge.report(violation{At: w.now(), Cluster: cloudStackName, Text: err.Error()})
		}
	})
	samples, err := w.play(ctx, events)
	if err == nil {
		w.calm()
		err = w.settle(ctx)
	}
	stop()
	watchers.Wait()
	if err != nil {
		return err
	}
	if err := table(w.out, samples); err != nil {
		return err
	}
	for _, text := range growth(samples) {
		w.judge.report(violation{At: w.now(), Text: text})
	}
	return nil
}

// settle runs the judges of the end.
func (w *world) settle(ctx context.Context) error {
	for _, step := range []func(context.Context) error{w.converge, w.rest, w.removeAll, w.cloudStack.empty} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	w.living.Wait()
	return errors.Join(w.panics(), w.compare())
}

// play executes all events at their times, and takes a sample each simulated hour. The events of a slot, and the
// disturbances, do not wait for each other.
func (w *world) play(ctx context.Context, events []event) ([]sample, error) {
	var running sync.WaitGroup
	var done atomic.Int64
	for _, own := range bySlot(events) {
		running.Go(func() { w.playSlot(ctx, own, &done) })
	}
	for _, e := range events {
		if e.Cluster != "" {
			continue
		}
		running.Go(func() {
			w.wait(ctx, e.At-w.now())
			if ctx.Err() == nil {
				w.note(e, w.disturb(ctx, e))
			}
		})
	}
	samples, err := w.sampleHours(ctx, &done)
	running.Wait()
	return samples, err
}

// bySlot returns the events of clusters by slot, each in order.
func bySlot(events []event) map[int][]event {
	out := map[int][]event{}
	for _, e := range events {
		if e.Cluster != "" {
			out[e.Slot] = append(out[e.Slot], e)
		}
	}
	return out
}

// playSlot executes the events of the clusters of a slot, one after the other.
func (w *world) playSlot(ctx context.Context, events []event, done *atomic.Int64) {
	var t *tenant
	for _, e := range events {
		w.wait(ctx, e.At-w.now())
		if ctx.Err() != nil {
			return
		}
		if e.Action == actCreate {
			t = w.newTenant(e)
		}
		w.logf("%s %s %d", e.Cluster, e.Action, e.Number)
		if e.Cluster == cloudStackName {
			w.note(e, w.cloudStack.act(ctx, e))
		} else {
			w.note(e, t.act(ctx, e))
		}
		done.Add(1)
	}
}

// note reports an event that could not be executed.
func (w *world) note(e event, err error) {
	if err != nil {
		w.judge.report(violation{At: w.now(), Cluster: e.Cluster, Text: fmt.Sprintf("%s: %s", e.Action, err)})
	}
}

// sampleHours takes a sample after each simulated hour until the end of the run.
func (w *world) sampleHours(ctx context.Context, done *atomic.Int64) ([]sample, error) {
	m := &meter{since: time.Now()}
	for at := time.Hour; at <= w.duration; at += time.Hour {
		w.wait(ctx, at-w.now())
		if err := ctx.Err(); err != nil {
			return m.samples, err
		}
		if err := w.measure(ctx, m, int(done.Load())); err != nil {
			return m.samples, err
		}
		w.logf("sample %+v", m.samples[len(m.samples)-1])
	}
	w.wait(ctx, w.duration-w.now())
	return m.samples, ctx.Err()
}
