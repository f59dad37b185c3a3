// SPDX-License-Identifier: Apache-2.0

package rde

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/problems"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// interval is the minimum time between two passes of a cluster that send requests to VCD.
	interval = 5 * time.Second
	// refresh is the interval at which an unchanged entity is read, because other clients may have changed it.
	refresh = time.Hour
	// offPoll is the delay after VCD showed that the entity does not exist, that the user has no right to it, or that
	// its content is invalid.
	offPoll = 10 * time.Minute
	// answerTime bounds the requests of a pass to VCD. It is less than the time after which a site counts as
	// unresponsive, so that an entity service that hangs does not stop requests to the rest of the site.
	answerTime = 8 * time.Second
	// oldest is the version that every site with the entity type has.
	oldest = "1.1.0"
	// orNone is the last remedy if the entity cannot be created or updated.
	orNone = ", or set spec.rde.mode to None"
	// noEntity is the prefix of the ID of a cluster for which CAPVCD was configured to create no entity.
	noEntity = "NO_RDE_"
)

// kind is the kind of the entities of clusters.
var kind = vcd.EntityKind{Vendor: "vmware", NSS: "capvcdCluster"}

// A state caches the result of the last reconcile of the cluster's entity. It is lost on restart.
type state struct {
	called   time.Time     // when the last request was sent to VCD
	held     phases.Result // result of that request; reused up to the time in until, at least for interval
	until    time.Time
	settings settings.Version // settings of the cluster at that time
	written  string           // digest of the facts that were last written
	checked  time.Time
	removing bool // since the first pass that removes the entity
}

// beginRemoval ends the pause after a refused write: it must not delay the deletion of the cluster.
func (s *state) beginRemoval() {
	if !s.removing {
		s.removing = true
		s.until = time.Time{}
	}
}

// errConflict means that another client wrote the entity at the same time.
var errConflict = &conflictError{}

type conflictError struct{}

// Error implements error.
func (*conflictError) Error() string { return "another client wrote the entity at the same time" }

// Later returns the delay before the next attempt. It is random, so that it differs from that of the other client.
func (*conflictError) Later() time.Duration {
	return interval + rand.N(interval) //nolint:gosec // spreads writes, protects nothing
}

// project takes the next step towards an up-to-date entity.
func project(ctx context.Context, s *scope) (phases.Result, error) {
	return phases.Sequence(ctx, s.checkID, s.claim, s.show)
}

// checkID checks that the cluster has an ID with which it may have an entity.
func (s *scope) checkID(context.Context) (phases.Result, error) {
	c := s.vcdCluster
	switch {
	case c.Spec.InfraID == "":
		return phases.Wait(0, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+infrav1.EndpointReadyCondition), nil
	case strings.HasPrefix(c.Spec.InfraID, noEntity) && c.Spec.RDE.ID == "":
		return phases.Stop(infrav1.RDEExcludedReason, "spec.infraID begins with %s, so the cluster has no runtime defined entity: set spec.rde.mode to None, or set an entity in spec.rde.id", noEntity), nil
	}
	return phases.Done, nil
}

// show updates the entity from the observed objects.
func (s *scope) show(ctx context.Context) (phases.Result, error) {
	return s.rateLimited(ctx, s.observe, s.open, s.find, s.write)
}

// rateLimited runs steps that send requests to VCD, unless some did recently. In that case it returns the last result.
// Failures of VCD affect only the condition of the entity.
func (s *scope) rateLimited(ctx context.Context, steps ...func(context.Context) (phases.Result, error)) (phases.Result, error) {
	st := s.state
	now := s.now()
	if now.Before(st.until) && st.settings == settings.Of(s.vcdCluster) {
		st.held.After = st.until.Sub(now)
		return st.held, nil
	}
	if next := st.called.Add(interval); now.Before(next) {
		s.again = next.Sub(now)
		held := st.held
		if held != phases.Done {
			held.After = s.again // Something changed, so the result may no longer apply.
		}
		return held, nil
	}
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	st.called = now
	st.settings = settings.Of(s.vcdCluster)
	out, err := phases.Sequence(limited, steps...)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		out = phases.Unsure(intervals.Unreachable, infrav1.SiteUnreachableReason,
			"the VCD service for runtime defined entities does not respond")
		err = nil
	}
	st.held = phases.Done
	st.until = time.Time{}
	if err == nil && out != phases.Done {
		st.held = out
		st.until = now.Add(out.After)
	}
	return out, err
}

// open logs in.
func (s *scope) open(ctx context.Context) (phases.Result, error) {
	opened, out, err := s.reconciler.Identities.Open(ctx, s.reconciler.Sessions, s.vcdCluster)
	s.session = opened
	return out, err
}

// known reports whether an entity of the cluster is recorded.
func (s *scope) known() bool { return notes.EntityID(s.vcdCluster) != "" }

// find finds the ID of the entity: the recorded one, or that of an entity that was created for the cluster. If there is
// none, find creates the entity.
func (s *scope) find(ctx context.Context) (phases.Result, error) {
	c := s.vcdCluster
	if s.id = notes.EntityID(c); s.id != "" {
		return phases.Done, nil
	}
	found, err := s.session.Entities().Find(ctx, kind, c.Name, c.Spec.InfraID)
	if err != nil {
		return unavailable(err, "Searching for the runtime defined entity")
	}
	for _, hit := range found {
		if s.id == "" || hit.ID < s.id {
			s.id = hit.ID
		}
	}
	if s.id == "" {
		if out, err := s.create(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	c.Spec.RecordedState.RDEID = s.id
	return phases.Done, s.patcher.Save(ctx)
}

// create creates the entity.
func (s *scope) create(ctx context.Context) (phases.Result, error) {
	c := s.vcdCluster
	versions, err := s.session.Entities().Types(ctx, kind)
	if err != nil && !isHidden(err) {
		return unavailable(err, "Searching for types of runtime defined entities")
	}
	entityType := "urn:vcloud:type:" + kind.Vendor + ":" + kind.NSS + ":" + newest(versions)
	content, err := rde.New(entityType, s.facts.Cluster)
	if err != nil {
		return phases.Done, err
	}
	s.id, err = s.session.Entities().Create(ctx, vcd.EntitySpec{
		Type:       entityType,
		Name:       c.Name,
		ExternalID: c.Spec.InfraID,
		Content:    content,
	})
	switch {
	case err != nil:
		return unavailable(err, "Creating a runtime defined entity")
	case s.id == "":
		return phases.Wait(interval, infrav1.TaskRunningReason, "Waiting for VCD to show the new entity"), nil
	}
	s.created = true
	entityCreated(s.reconciler.Recorder, c, s.id)
	return phases.Done, nil
}

// newest returns the newest version with a supported layout.
func newest(versions []string) string {
	best := version.MustParseSemantic(oldest)
	for _, v := range versions {
		if !rde.Supports("urn:vcloud:type:vmware:capvcdCluster:" + v) {
			continue
		}
		if parsed, err := version.ParseSemantic(v); err == nil && best.LessThan(parsed) {
			best = parsed
		}
	}
	return best.String()
}

// write updates the entity if it does not show the observed facts.
func (s *scope) write(ctx context.Context) (phases.Result, error) {
	st := s.state
	now := s.now()
	digest := s.facts.digest(s.id)
	switch {
	case st.written == digest && now.Sub(st.checked) < refresh:
		return phases.Done, nil
	case s.created:
		s.again = interval // VCD's own data is added by the next pass
		return s.resolve(ctx)
	}
	writer := rde.Writer{In: s.session.Entities(), Tries: 1}
	if st.written != digest { // Otherwise the read is due, to find changes of others.
		writer.Last = s.reconciler.recent.get(s.id)
	}
	entity, _, err := writer.Update(ctx, s.id, func(entity vcd.Entity) (json.RawMessage, error) {
		shown := s.facts.Cluster
		shown.Org.ID = entity.Org.ID
		return rde.Project(entity.Type, entity.Content, shown)
	})
	if out, err := s.problem(err); err != nil || out != phases.Done {
		s.reconciler.recent.drop(s.id)
		return out, err
	}
	s.reconciler.recent.put(entity)
	if entity.State != vcd.EntityResolved {
		if out, err := s.resolve(ctx); err != nil || out != phases.Done {
			return out, err
		}
	}
	st.written = digest
	st.checked = now
	return phases.Done, nil
}

// resolve makes VCD validate the entity against its schema.
func (s *scope) resolve(ctx context.Context) (phases.Result, error) {
	problem, err := s.session.Entities().Resolve(ctx, s.id)
	switch {
	case err != nil:
		return unavailable(err, "Resolving the runtime defined entity")
	case problem != "":
		return s.invalid(errors.New(problem)), nil
	}
	return phases.Done, nil
}

// problem maps the failure to write the entity to a result.
func (s *scope) problem(err error) (phases.Result, error) {
	switch {
	case err == nil:
		return phases.Done, nil
	case errors.Is(err, vcd.ErrChanged):
		return phases.Done, errConflict
	case errors.Is(err, rde.ErrForeign):
		return phases.Fail(offPoll, infrav1.RDEOwnerMismatchReason, "%v: correct or remove spec.rde.id", err), nil
	case errors.Is(err, rde.ErrVersion), errors.Is(err, rde.ErrOtherType):
		return phases.Fail(offPoll, infrav1.RDEVersionNotSupportedReason,
			"%v: set another entity in spec.rde.id, or remove the field", err), nil
	case errors.Is(err, vcd.ErrInvalid):
		return s.invalid(err), nil
	}
	if isHidden(err) {
		return s.hidden(err), nil
	}
	return unavailable(err, "Writing the runtime defined entity")
}

// hidden returns the result for an entity that the user cannot see or change.
func (s *scope) hidden(err error) phases.Result {
	remedy := "share it with the user, or remove spec.recordedState.rdeID to create another entity"
	if s.vcdCluster.Spec.RecordedState.RDEID != s.id {
		remedy = "correct spec.rde.id, share the entity with the user, or set spec.rde.mode to None"
	}
	return phases.Fail(offPoll, infrav1.RDEUnavailableReason, "%v: the user has no access to the entity, or it was deleted: %s", err, remedy)
}

func (s *scope) invalid(err error) phases.Result {
	return phases.Fail(offPoll, infrav1.RDEInvalidReason,
		"VCD rejects the content of entity %s: %v: correct it in VCD", s.id, err)
}

// unavailable maps failures to find, create or write an entity to a result.
func unavailable(err error, doing string) (phases.Result, error) {
	if out, err := problems.OfRequest(err); err == nil {
		return out, nil
	}
	switch {
	case isHidden(err):
		return phases.Fail(offPoll, infrav1.RDEUnavailableReason, "%s: %v: ask the provider to register the type %s:%s and to grant the user its right Full Access"+orNone,
			doing, err, kind.Vendor, kind.NSS), nil
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrConflict):
		return phases.Fail(offPoll, infrav1.RDEInvalidReason, "%s: %v", doing, err), nil
	}
	return phases.Done, fmt.Errorf("%s: %w", strings.ToLower(doing), err)
}

// claim checks that no other cluster of this management cluster has the entity. Of several clusters, the one for which
// the ID was created keeps the entity, or else the oldest one.
func (s *scope) claim(ctx context.Context) (phases.Result, error) {
	other, err := s.rival(ctx)
	if err != nil || other == nil {
		return phases.Done, err
	}
	return phases.Fail(offPoll, infrav1.RDEInUseReason, "%s has the same runtime defined entity, or the same spec.infraID: correct spec.rde.id or spec.infraID of one of them", capicluster.NameFor(s.vcdCluster, other)), nil
}

// rival returns the cluster that has the entity instead of this one; nil if no other cluster has it.
func (s *scope) rival(ctx context.Context) (*infrav1.VCDCluster, error) {
	list := &infrav1.VCDClusterList{}
	c := s.vcdCluster
	if err := s.reconciler.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing VCDClusters: %w", err)
	}
	i := slices.IndexFunc(list.Items, func(other infrav1.VCDCluster) bool {
		return other.UID != c.UID && projected(&other) && sameEntity(&other, c) && precedes(&other, c)
	})
	if i < 0 {
		return nil, nil
	}
	return &list.Items[i], nil
}

func sameEntity(a, b *infrav1.VCDCluster) bool {
	if !sites.Same(a.Spec.Site, b.Spec.Site) || a.Spec.Org != b.Spec.Org {
		return false
	}
	id := notes.EntityID(b)
	return a.Spec.InfraID == b.Spec.InfraID && a.Spec.InfraID != "" || id != "" && notes.EntityID(a) == id
}

func precedes(a, b *infrav1.VCDCluster) bool {
	isOriginal := func(c *infrav1.VCDCluster) bool { return c.Spec.InfraID == string(c.UID) && c.Spec.RDE.ID == "" }
	if isOriginal(a) != isOriginal(b) {
		return isOriginal(a)
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}
