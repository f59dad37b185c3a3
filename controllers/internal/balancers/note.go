// SPDX-License-Identifier: Apache-2.0

package balancers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// noteInterval is the minimum time between records on the VCDCluster. The last removal may be later than recorded by up
// to this time.
const noteInterval = Afterlife / 4

// notedRemoval returns the latest time at which a manager may have removed a load balancer of a cluster; zero if none
// did. The result is never in the future.
func notedRemoval(c *infrav1.VCDCluster, now time.Time) time.Time {
	at := c.Spec.RecordedState.LoadBalancersRemovedAt
	if at == nil {
		return time.Time{}
	}
	if latest := at.Add(noteInterval); latest.Before(now) {
		return latest
	}
	return now
}

// removalNote returns a function that records on the VCDCluster when a load balancer is removed. The function runs
// concurrently with reconciles, so it shares no object with them.
func removalNote(to client.Client, c *infrav1.VCDCluster) func(context.Context, time.Time) error {
	uid := c.UID
	namespace := c.Namespace
	name := c.Name
	return func(ctx context.Context, at time.Time) error {
		seconds := at.UTC().Add(time.Second - 1).Truncate(time.Second) // rounded up
		note, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": uid},
			"spec": map[string]any{"recordedState": map[string]any{
				"loadBalancersRemovedAt": metav1.NewTime(seconds),
			}},
		})
		if err != nil {
			return fmt.Errorf("%w: recording a removal: %w", loadbalancer.ErrUnknown, err)
		}
		noted := &infrav1.VCDCluster{}
		noted.Namespace = namespace
		noted.Name = name
		if err := to.Patch(ctx, noted, client.RawPatch(types.MergePatchType, note)); err != nil {
			return fmt.Errorf("%w: recording on VCDCluster %s that load balancers are removed: %w", loadbalancer.ErrUnknown, name,
				err)
		}
		return nil
	}
}
