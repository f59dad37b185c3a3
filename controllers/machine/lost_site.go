package machine

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/absence"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// A site is what is missing on the site of a machine, and who may know more. All of it is read from objects: a restart forgets
// nothing.
type site struct {
	gone.Site

	others    bool                 // others of the machine's cluster are missing
	neighbors []infrav1.VCDMachine // of the site's other clusters
}

// site returns what is missing on the site besides the machine itself.
func (l *lostVM) site(ctx context.Context, me gone.Missing) (*site, error) {
	clusters, machines := &infrav1.VCDClusterList{}, &infrav1.VCDMachineList{}
	if err := l.Client.List(ctx, clusters); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if err := l.Client.List(ctx, machines); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	s := &site{Site: gone.Site{Machines: 1, Asked: l.state.missing.announced}}
	var err error
	if s.Acknowledged, err = l.acknowledged(ctx, me); err != nil {
		return nil, err
	}
	s.Released, _ = time.Parse(time.RFC3339, l.vcdCluster.Annotations[infrav1.LastGoneAnnotation]) // zero: none was
	onSite := map[string]bool{}
	for _, c := range clusters.Items {
		if session.NormalSite(c.Spec.Site) != session.NormalSite(l.vcdCluster.Spec.Site) {
			continue
		}
		onSite[c.Namespace+"/"+session.ClusterName(&c, nil)] = true
		if c.UID != l.vcdCluster.UID {
			at, err := time.Parse(time.RFC3339, c.Annotations[infrav1.GoneStoppedAnnotation])
			s.Stopped = s.Stopped || err == nil && at.After(s.Acknowledged)
		}
	}
	s.Stopped = s.Stopped || l.vcdCluster.Annotations[infrav1.GoneStoppedAnnotation] != ""
	for _, m := range machines.Items {
		cluster := m.Namespace + "/" + m.Labels[clusterv1.ClusterNameLabel]
		if onSite[cluster] && m.Spec.ProviderID != "" && m.UID != l.vcdMachine.UID {
			s.add(m, cluster, cluster == me.Cluster)
		}
	}
	s.Neighbors = len(s.neighbors) > 0
	return s, nil
}

// add counts another machine.
func (s *site) add(m infrav1.VCDMachine, cluster string, mine bool) {
	if mine {
		s.Machines++
	} else {
		s.neighbors = append(s.neighbors, m)
	}
	if missing, ok := missingOf(&m, cluster); ok {
		s.Missing = append(s.Missing, missing)
		s.others = s.others || mine
	}
}

// missingOf reads from the annotations of a machine whether its VM is missing. One that a person declared gone does not count.
func missingOf(m *infrav1.VCDMachine, cluster string) (gone.Missing, bool) {
	found := gone.Missing{Cluster: cluster, Name: m.Name, Since: absence.Since(m)}
	found.Gone, _ = time.Parse(time.RFC3339, m.Annotations[infrav1.VMNotFoundSinceAnnotation]) // zero if it was not declared gone
	return found, !found.Since.IsZero() && m.Annotations[infrav1.VMGoneAnnotation] != "true"
}

// askNeighbors makes the machines of other clusters of the site observe their VMs at once, so that a failure of the whole site is
// known before the first of its machines counts as gone.
func (l *lostVM) askNeighbors(around *site) {
	if !l.state.missing.announced.IsZero() {
		return
	}
	l.state.missing.announced = l.now()
	for _, other := range around.neighbors {
		l.states.Of(other.UID).freshness.stale.Store(true)
		l.wakeUps.ForObject(&other)()
	}
}

// stopSite records on the VCDCluster that VMs of several clusters of the site are missing: none counts as gone until a person
// acknowledges it.
func (l *lostVM) stopSite(ctx context.Context) (phases.Outcome, error) {
	c := l.vcdCluster
	if c.Annotations[infrav1.GoneStoppedAnnotation] == "" {
		goneStopped(l.Recorder, c)
		if err := l.noteOnCluster(ctx, infrav1.GoneStoppedAnnotation, l.now().UTC().Format(time.RFC3339)); err != nil {
			return phases.Done, err
		}
	}
	return phases.Unsure(session.RemedyPoll, infrav1.GoneStoppedReason,
		"%s is missing, and VMs of other clusters of the site went missing at the same time, so none counts as gone: check VCD. If those of this cluster that are missing now are gone, annotate VCDCluster %s with %s=true",
		l.name, c.Name, infrav1.GoneAcknowledgedAnnotation), nil
}

// acknowledged returns when a person last acknowledged that what is missing is gone. Their annotation is replaced by the time at
// which a machine that is proved missing read it.
func (l *lostVM) acknowledged(ctx context.Context, me gone.Missing) (time.Time, error) {
	c := l.vcdCluster
	value := c.Annotations[infrav1.GoneAcknowledgedAnnotation]
	if value != "true" || me.Since.IsZero() || l.now().Sub(me.Since) < gone.ProofInterval {
		at, _ := time.Parse(time.RFC3339, value) // zero if there is none
		return at, nil
	}
	now := l.now().UTC().Truncate(time.Second)
	noted := c.DeepCopy()
	notes.Set(noted, infrav1.GoneAcknowledgedAnnotation, now.Format(time.RFC3339))
	delete(noted.Annotations, infrav1.GoneStoppedAnnotation)
	if err := l.Client.Patch(ctx, noted, client.MergeFrom(c)); err != nil {
		return time.Time{}, fmt.Errorf("noting on VCDCluster %s that what is missing is gone: %w", c.Name, err)
	}
	goneAcknowledged(l.Recorder, c)
	l.vcdCluster = noted
	return now, nil
}
