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
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/notes"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/session"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/settings"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/sites"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

const (
	// interval is the least time between two passes of a cluster that call VCD.
	interval = 5 * time.Second
	// refresh is how often an entity is read although nothing changed here: others may have changed it.
	refresh = time.Hour
	// offPoll is how long to wait after VCD showed that there is no entity, or no right to it, or that it cannot be
	// written as it is.
	offPoll = 10 * time.Minute
	// answerTime bounds a pass's calls to VCD. It is less than the time after which a site counts as silent, so that a
	// service for entities that hangs does not stop calls to the rest of the site.
	answerTime = 8 * time.Second
	// oldest is the type that every site with the type has.
	oldest = "1.1.0"
	// orNone is the last remedy for an entity that cannot be had.
	orNone = ", or set spec.rde.mode to None"
	// noEntity begins the id of a cluster that CAPVCD was told to make no entity for.
	noEntity = "NO_RDE_"
)

// kind are the entities of clusters.
var kind = vcd.EntityKind{Vendor: "vmware", NSS: "capvcdCluster"}

// A state is what the process knows of the entity of a cluster between passes.
type state struct {
	called   time.Time     // when VCD was last called
	held     phases.Result // of the last call; it stays until then
	until    time.Time
	settings settings.Version // of the cluster then
	written  string           // digest of what the entity shows
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

// Later returns how long to wait before the next try: not as long as the other client.
func (*conflictError) Later() time.Duration {
	return interval + rand.N(interval) //nolint:gosec // spreads writes, protects nothing
}

// project takes the next step to an entity that shows the cluster.
func project(ctx context.Context, s *scope) (phases.Result, error) {
	return phases.Sequence(ctx, s.checkID, s.claim, s.show)
}

// checkID checks that the cluster has an id by which it may have an entity.
func (s *scope) checkID(context.Context) (phases.Result, error) {
	c := s.vcdCluster
	switch {
	case c.Spec.InfraID == "":
		return phases.Wait(0, infrav1.WaitingForEarlierPhaseReason, "Waiting for "+infrav1.EndpointReadyCondition), nil
	case strings.HasPrefix(c.Spec.InfraID, noEntity) && c.Spec.RDE.ID == "":
		return phases.Stop(infrav1.RDEExcludedReason, "spec.infraID begins with %s, so the cluster has no "+
			"runtime defined entity: set spec.rde.mode to None, or set an entity in spec.rde.id", noEntity), nil
	}
	return phases.Done, nil
}

// show makes the entity show the cluster.
func (s *scope) show(ctx context.Context) (phases.Result, error) {
	return s.sparingly(ctx, s.observe, s.open, s.find, s.write)
}

// sparingly runs steps that call VCD, unless they did just now: then the last result stands. Whatever VCD answers,
// only the condition of the entity shows it.
func (s *scope) sparingly(ctx context.Context, steps ...func(context.Context) (phases.Result, error)) (phases.Result,
	error,
) {
	st := s.state
	now := s.now()
	if now.Before(st.until) && st.settings == settings.Of(s.vcdCluster) {
		st.held.After = st.until.Sub(now)
		return st.held, nil
	}
	if next := st.called.Add(interval); now.Before(next) {
		s.again = next.Sub(now)
		return st.held, nil
	}
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	st.called = now
	st.settings = settings.Of(s.vcdCluster)
	out, err := phases.Sequence(limited, steps...)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		out = phases.Unsure(session.UnreachablePoll, infrav1.SiteUnreachableReason,
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

// known reports whether the cluster has an entity, as far as is known.
func (s *scope) known() bool { return notes.EntityID(s.vcdCluster) != "" }

// find sets the id of the entity: what was recorded, or what was made for the cluster, which is made if it is missing.
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

// create makes the entity.
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
	s.made = true
	entityCreated(s.reconciler.Recorder, c, s.id)
	return phases.Done, nil
}

// newest returns the newest version with the layout that is known.
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

// write makes the entity show what was observed, if it does not yet.
func (s *scope) write(ctx context.Context) (phases.Result, error) {
	st := s.state
	now := s.now()
	digest := s.facts.digest(s.id)
	switch {
	case st.written == digest && now.Sub(st.checked) < refresh:
		return phases.Done, nil
	case s.made:
		s.again = interval // VCD's own facts are added then
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

// resolve has VCD hold the entity against its schema.
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

// problem says why the entity was not written.
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

// hidden says that the entity cannot be seen or changed.
func (s *scope) hidden(err error) phases.Result {
	remedy := "share it with the user, or remove spec.recordedState.rdeID to create another entity"
	if s.vcdCluster.Spec.RecordedState.RDEID != s.id {
		remedy = "correct spec.rde.id, share the entity with the user, or set spec.rde.mode to None"
	}
	return phases.Fail(offPoll, infrav1.RDEUnavailableReason, "%v: the user has no access to the entity, or it "+
		"was deleted: %s", err, remedy)
}

func (s *scope) invalid(err error) phases.Result {
	return phases.Fail(offPoll, infrav1.RDEInvalidReason,
		"VCD rejects the content of entity %s: %v: correct it in VCD", s.id, err)
}

// unavailable maps what keeps an entity from being found, made or written to a result.
func unavailable(err error, doing string) (phases.Result, error) {
	if out, err := session.AskProblem(err); err == nil {
		return out, nil
	}
	switch {
	case isHidden(err):
		return phases.Fail(offPoll, infrav1.RDEUnavailableReason, "%s: %v: ask the provider to register the "+
			"type %s:%s and to grant the user its right Full Access"+orNone,
			doing, err, kind.Vendor, kind.NSS), nil
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrConflict):
		return phases.Fail(offPoll, infrav1.RDEInvalidReason, "%s: %v", doing, err), nil
	}
	return phases.Done, fmt.Errorf("%s: %w", strings.ToLower(doing), err)
}

// claim makes sure that no other cluster of this management cluster has the entity. Of several, the one that the id was
// made for keeps it, else the oldest.
func (s *scope) claim(ctx context.Context) (phases.Result, error) {
	other, err := s.rival(ctx)
	if err != nil || other == nil {
		return phases.Done, err
	}
	return phases.Fail(offPoll, infrav1.RDEInUseReason, "%s has the same runtime defined entity, or the same "+
		"spec.infraID: correct spec.rde.id or spec.infraID of one of them", session.NameFor(s.vcdCluster, other)), nil
}

// rival returns the cluster that has the entity of this one; nil if there is none.
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
	made := func(c *infrav1.VCDCluster) bool { return c.Spec.InfraID == string(c.UID) && c.Spec.RDE.ID == "" }
	if made(a) != made(b) {
		return made(a)
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID)) < 0
}
