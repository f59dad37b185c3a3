package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/lb"
)

// noteEvery is how often the VCDCluster is told that its load balancers are being removed: the last removal may be that much later than it says.
const noteEvery = afterlife / 4

// notedRemoval returns when a manager last removed a load balancer of a cluster, at the latest; zero: none did. A note that cannot be read, or is
// of a time that is still to come, may be of just now.
func notedRemoval(c *infrav1.VCDCluster, now time.Time) time.Time {
	text := c.Annotations[infrav1.LoadBalancersRemovedAnnotation]
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if latest := at.Add(noteEvery); err == nil && latest.Before(now) {
		return latest
	}
	return now
}

// removalNote returns what notes on the VCDCluster when a load balancer is removed. It runs beside reconciles, so it holds nothing of theirs.
func (s *scope) removalNote() func(context.Context, time.Time) error {
	c, to := s.vcdCluster, s.Client
	uid, namespace, name := c.UID, c.Namespace, c.Name
	return func(ctx context.Context, at time.Time) error {
		note, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"uid": uid, "annotations": map[string]any{infrav1.LoadBalancersRemovedAnnotation: at.UTC().Format(time.RFC3339Nano)},
		}})
		if err != nil {
			return fmt.Errorf("%w: noting a removal: %w", lb.ErrUnknown, err)
		}
		noted := &infrav1.VCDCluster{}
		noted.Namespace, noted.Name = namespace, name
		if err := to.Patch(ctx, noted, client.RawPatch(types.MergePatchType, note)); err != nil {
			return fmt.Errorf("%w: noting on VCDCluster %s that load balancers are removed: %w", lb.ErrUnknown, name, err)
		}
		return nil
	}
}
