package machine

import (
	"context"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/gone"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// announcedFor is how long a machine that counts as gone waits for those of other clusters of the site to look, too.
const announcedFor = 15 * time.Second

// A siteView is what is missing on the site of a machine.
type siteView struct {
	clusters []infrav1.VCDCluster // of the site, but the machine's own
	missing  []gone.Missing
	mine     []gone.Missing // of the machine's own cluster
	others   []infrav1.VCDMachine
	n        int // machines of the cluster that have, or had, a VM
}

// lookAround returns what is missing on the machine's site. All of it stands on objects: a restart forgets nothing.
func (s *scope) lookAround(ctx context.Context, me gone.Missing) (siteView, error) {
	clusters, machines := &infrav1.VCDClusterList{}, &infrav1.VCDMachineList{}
	if err := s.Client.List(ctx, clusters); err != nil {
		return siteView{}, fmt.Errorf("listing VCDClusters: %w", err)
	}
	if err := s.Client.List(ctx, machines); err != nil {
		return siteView{}, fmt.Errorf("listing VCDMachines: %w", err)
	}
	view := siteView{missing: []gone.Missing{me}, mine: []gone.Missing{me}, n: 1}
	onSite, site := map[string]bool{}, session.NormalSite(s.vcdCluster.Spec.Site)
	for _, c := range clusters.Items {
		if session.NormalSite(c.Spec.Site) != site {
			continue
		}
		onSite[c.Namespace+"/"+session.ClusterName(&c, nil)] = true
		if c.UID != s.vcdCluster.UID {
			view.clusters = append(view.clusters, c)
		}
	}
	for _, m := range machines.Items {
		cluster := m.Namespace + "/" + m.Labels[clusterv1.ClusterNameLabel]
		if onSite[cluster] && m.Spec.ProviderID != "" && m.UID != s.vcdMachine.UID {
			view.add(m, cluster, me.Cluster)
		}
	}
	return view, nil
}

// add counts a machine of a cluster, seen from a machine of the cluster mine.
func (v *siteView) add(m infrav1.VCDMachine, cluster, mine string) {
	if cluster == mine {
		v.n++
	} else {
		v.others = append(v.others, m)
	}
	missing, ok := missingOf(&m, cluster)
	if !ok {
		return
	}
	v.missing = append(v.missing, missing)
	if cluster == mine {
		v.mine = append(v.mine, missing)
	}
}

// missingOf reads from the notes on a machine whether its VM is missing. One that a person declared gone is accounted for.
func missingOf(m *infrav1.VCDMachine, cluster string) (gone.Missing, bool) {
	found := gone.Missing{Cluster: cluster, Name: m.Name}
	var err error
	if found.Since, err = time.Parse(time.RFC3339, m.Annotations[infrav1.MissingSinceAnnotation]); err != nil {
		return found, false
	}
	found.Gone, _ = time.Parse(time.RFC3339, m.Annotations[infrav1.VMNotFoundSinceAnnotation]) // the zero time if it was not
	return found, m.Annotations[infrav1.VMGoneAnnotation] != "true"
}

// brake holds back a VM that is proved to be gone while so many others are, too, that VCD itself may be what is wrong. What
// passes is noted: it counts for the others.
func (s *scope) brake(ctx context.Context, what string) (phases.Outcome, error) {
	m := s.vcdMachine
	me, ok := missingOf(m, m.Namespace+"/"+session.ClusterName(s.vcdCluster, s.cluster))
	if !ok || !me.Gone.IsZero() {
		return phases.Done, nil
	}
	view, err := s.lookAround(ctx, me)
	if err != nil {
		return phases.Done, err
	}
	if out, err := s.stopOnSite(ctx, me, view, what); err != nil || out != phases.Done {
		return out, err
	}
	if left := s.announce(view); left > 0 {
		return phases.Unsure(left, infrav1.VMUnverifiedReason, "%s is not seen: waiting for what is found out about other clusters of the site", what), nil
	}
	last, _ := time.Parse(time.RFC3339, s.vcdCluster.Annotations[infrav1.LastGoneAnnotation]) // the zero time if there is none
	if left := gone.HoldBack(s.now(), me, view.mine, view.n, last); left > 0 {
		return phases.Unsure(min(left, session.RemedyPoll), infrav1.GoneHeldBackReason,
			"%s is not seen, as are more than a third of the cluster's %d VMs: they count as gone after ten minutes, one by one. If this one is, annotate the VCDMachine with %s=true",
			what, view.n, infrav1.VMGoneAnnotation), nil
	}
	at := s.now().UTC().Format(time.RFC3339)
	if len(view.mine) > 1 {
		if err := s.noteOnCluster(ctx, infrav1.LastGoneAnnotation, at); err != nil {
			return phases.Done, err
		}
	}
	notes.Set(m, infrav1.VMNotFoundSinceAnnotation, at)
	return phases.Done, s.save(ctx)
}

// announce makes the machines of other clusters of the site look at once, so that a failure of the whole site is known before
// the first of its machines counts as gone. It returns how long to wait for them.
func (s *scope) announce(view siteView) time.Duration {
	if len(view.others) == 0 {
		return 0
	}
	now := s.now()
	if s.memory.announced.IsZero() {
		s.memory.announced = now
		for _, other := range view.others {
			s.memories.of(other.UID).unwell.Store(true)
			s.wakeUps.ForObject(&other)()
		}
	}
	return s.memory.announced.Add(announcedFor).Sub(now)
}

// stopOnSite stops everything on a site where VMs of several clusters went missing together, until a person says that they are
// gone. The stop stands on the VCDCluster, and so does its end.
func (s *scope) stopOnSite(ctx context.Context, me gone.Missing, view siteView, what string) (phases.Outcome, error) {
	c := s.vcdCluster
	acknowledged, err := s.acknowledge(ctx)
	if err != nil || !me.Since.After(acknowledged) {
		return phases.Done, err
	}
	if c.Annotations[infrav1.GoneStoppedAnnotation] == "" {
		if !gone.Together(s.now(), me.Cluster, acknowledged, view.missing) && !stoppedElsewhere(view.clusters, acknowledged) {
			return phases.Done, nil
		}
		goneStopped(s.Recorder, c)
		if err := s.noteOnCluster(ctx, infrav1.GoneStoppedAnnotation, s.now().UTC().Format(time.RFC3339)); err != nil {
			return phases.Done, err
		}
	}
	return phases.Unsure(session.RemedyPoll, infrav1.GoneStoppedReason,
		"%s is not seen, and VMs of other clusters of the site went missing at the same time, so none counts as gone: look at VCD. If those of this cluster that are missing now are gone, annotate VCDCluster %s with %s=true",
		what, c.Name, infrav1.GoneAcknowledgedAnnotation), nil
}

// acknowledge returns when a person last said that what is missing is gone. Their word is replaced by the time it was read.
func (s *scope) acknowledge(ctx context.Context) (time.Time, error) {
	c := s.vcdCluster
	said := c.Annotations[infrav1.GoneAcknowledgedAnnotation]
	if said != "true" {
		at, _ := time.Parse(time.RFC3339, said) // the zero time if nobody did
		return at, nil
	}
	now := s.now().UTC().Truncate(time.Second)
	noted := c.DeepCopy()
	notes.Set(noted, infrav1.GoneAcknowledgedAnnotation, now.Format(time.RFC3339))
	delete(noted.Annotations, infrav1.GoneStoppedAnnotation)
	if err := s.Client.Patch(ctx, noted, client.MergeFrom(c)); err != nil {
		return time.Time{}, fmt.Errorf("noting on VCDCluster %s that what is missing is gone: %w", c.Name, err)
	}
	goneAcknowledged(s.Recorder, c)
	s.vcdCluster = noted
	return now, nil
}

// stoppedElsewhere says whether another cluster of the site was stopped after a time.
func stoppedElsewhere(clusters []infrav1.VCDCluster, after time.Time) bool {
	for _, c := range clusters {
		if at, err := time.Parse(time.RFC3339, c.Annotations[infrav1.GoneStoppedAnnotation]); err == nil && at.After(after) {
			return true
		}
	}
	return false
}
