// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/utils/clock"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/loadbalancer"
)

// Reasons of events on Nodes about their topology.
const (
	// reasonTagMissing means that the Node gets no zone or region, because neither its VM nor a parent object has a tag
	// for it.
	reasonTagMissing = "TagNotFound"
	// reasonTagAmbiguous means that an object has several tags of a category: the first one is used.
	reasonTagAmbiguous = "TagAmbiguous"
)

const (
	// hiddenAge is how long the tags of an object are not requested after vCenter refused them.
	hiddenAge = time.Hour
	// maxRefusals is the number of refused requests after which the user is assumed to lack access to all tags.
	maxRefusals = 40
)

// tagsAge is how long tags are cached. They are read earlier if a VM is in an unknown object.
const tagsAge = 5 * time.Minute

var (
	// errTags means that tags could not be read.
	errTags = errors.New("its zone and region are not known yet")
	// errShared means that the session can never read tags.
	errShared = errors.New("a shared session cannot read tags: zones require a user name or a certificate")
)

// Topology selects the data that is reported about the place of a VM.
type Topology struct {
	// Zone and Region are the names of tag categories; empty means that none is reported.
	Zone, Region string
	// InstanceType is the name of a tag category that replaces the instance type; empty means that none does.
	InstanceType string
	// HostLabel and ClusterLabel are the keys of labels with the names of the host and its cluster; empty means no
	// label.
	HostLabel, ClusterLabel string
}

// categories returns the names of the configured categories.
func (t Topology) categories() []string {
	return slices.DeleteFunc([]string{t.Zone, t.Region, t.InstanceType}, func(name string) bool { return name == "" })
}

// A resolver adds the topology of a VM to its machine.
type resolver func(machine *cpi.Machine, all inventory, vm types.ManagedObjectReference)

// A tagCache caches the tags of one vCenter.
type tagCache struct {
	topology Topology
	clock    clock.PassiveClock

	mu       sync.Mutex
	read     time.Time
	attached map[types.ManagedObjectReference][]tags.Tag // nil elements: no tags
	known    map[string]tags.Tag                         // by ID
	names    map[string]string                           // of categories, by ID
	hidden   map[types.ManagedObjectReference]time.Time  // objects whose tags the user may not read, with the time of the refusal
}

// resolve returns the resolver for VMs. Errors are reported per machine, because the VMs exist even if their tags are
// unknown.
func (t *tagCache) resolve(
	ctx context.Context, c *connection, all inventory, vms []types.ManagedObjectReference,
) resolver {
	var err error
	if len(t.topology.categories()) > 0 {
		err = t.update(ctx, c, all, vms)
		if restError(err, http.StatusUnauthorized) && !errors.Is(err, errCredentials) {
			c.resetTags() // the session for tags has ended
			err = t.update(ctx, c, all, vms)
		}
	}
	return func(machine *cpi.Machine, all inventory, vm types.ManagedObjectReference) {
		places := all.places(vm)
		t.labels(machine, all, places)
		switch {
		case errors.Is(err, errShared):
			machine.Notices = append(machine.Notices, loadbalancer.Finding{
				Reason:  reasonTagMissing,
				Message: "the Node has neither zone nor region: " + errShared.Error(),
			})
		case err != nil:
			machine.Unready = fmt.Errorf("%w: %w", errTags, err)
		default:
			t.topologyOf(machine, all, vm, places)
		}
	}
}

// topologyOf adds the values of tags.
func (t *tagCache) topologyOf(
	machine *cpi.Machine, all inventory, vm types.ManagedObjectReference, places []types.ManagedObjectReference,
) {
	machine.Zone = t.label(machine, all, places, t.topology.Zone, "zone")
	machine.Region = t.label(machine, all, places, t.topology.Region, "region")
	if own := t.label(machine, all, []types.ManagedObjectReference{vm}, t.topology.InstanceType, ""); own != "" {
		machine.Type = own
	}
}

// labels adds the names of host and cluster as labels.
func (t *tagCache) labels(machine *cpi.Machine, all inventory, places []types.ManagedObjectReference) {
	kinds := map[string]string{t.topology.HostLabel: "HostSystem", t.topology.ClusterLabel: "ClusterComputeResource"}
	for key, kind := range kinds {
		at := slices.IndexFunc(places, func(ref types.ManagedObjectReference) bool { return ref.Type == kind })
		if key == "" || at < 0 {
			continue
		}
		if machine.Labels == nil {
			machine.Labels = map[string]string{}
		}
		machine.Labels[key] = cpi.LabelValue(all[places[at]].text("name"))
	}
}

// label returns the name of the nearest tag of a category, as a label value. If no tag is found, noun describes the
// value in a notice. An empty noun suppresses the notice.
func (t *tagCache) label(
	machine *cpi.Machine, all inventory, places []types.ManagedObjectReference, category, noun string,
) string {
	if category == "" {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, place := range places {
		var names []string
		for _, tag := range t.attached[place] {
			if t.names[tag.CategoryID] == category {
				names = append(names, tag.Name)
			}
		}
		slices.Sort(names)
		if len(names) > 1 {
			machine.Notices = append(machine.Notices, loadbalancer.Finding{
				Reason: reasonTagAmbiguous,
				Message: fmt.Sprintf(
					"%s %s has several tags of category %s: %s; the first is used. Keep only one", strings.ToLower(place.Type),
					all[place].text("name"), category, strings.Join(names, ", ")),
			})
		}
		if len(names) > 0 {
			return cpi.LabelValue(names[0])
		}
	}
	if noun != "" {
		machine.Notices = append(machine.Notices,
			loadbalancer.Finding{Reason: reasonTagMissing, Message: t.missing(category, noun)})
	}
	return ""
}

// missing returns the message for a missing tag of a category. The caller holds the lock.
func (t *tagCache) missing(category, noun string) string {
	return fmt.Sprintf("the Node has no %s: neither the VM nor its host, cluster, resource pools, folders or datacenter has a tag of category %q that is visible to the user. Check the name of the category, attach a tag to one of them, or grant the user the right to read it", noun, category)
}

// update reads the tags of all objects that contain the VMs, unless they are cached.
func (t *tagCache) update(
	ctx context.Context, c *connection, all inventory, vms []types.ManagedObjectReference,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	needed := map[types.ManagedObjectReference]bool{}
	complete := t.attached != nil && t.clock.Since(t.read) < tagsAge
	for _, vm := range vms {
		for _, place := range all.places(vm) {
			needed[place] = true
			_, known := t.attached[place]
			complete = complete && known
		}
	}
	if complete || len(needed) == 0 {
		return nil
	}
	manager, err := c.tagManager(ctx)
	if err != nil {
		return err
	}
	if !t.read.IsZero() && t.clock.Since(t.read) >= tagsAge {
		t.forget()
	}
	return t.reread(ctx, manager, needed)
}

// forget drops the names of categories and the tags of the configured categories, which may have been renamed. It keeps
// other tags, because each VM of a vCenter may have a different one. The caller holds the lock.
func (t *tagCache) forget() {
	used := t.topology.categories()
	maps.DeleteFunc(t.known, func(_ string, tag tags.Tag) bool {
		return slices.Contains(used, t.names[tag.CategoryID])
	})
	clear(t.names)
}

// reread reads the tags of objects, with one request for all attachments. The caller holds the lock.
func (t *tagCache) reread(
	ctx context.Context, manager *tags.Manager, needed map[types.ManagedObjectReference]bool,
) error {
	started := t.clock.Now()
	refusals := 0
	found, err := t.attachedTo(ctx, manager, t.readable(needed), &refusals)
	if err != nil {
		return fmt.Errorf("reading tags: %w", err)
	}
	attached := map[types.ManagedObjectReference][]tags.Tag{}
	used := map[string]bool{}
	for ref := range needed {
		attached[ref] = nil
	}
	for _, object := range found {
		for _, id := range object.TagIDs {
			tag, err := t.tag(ctx, manager, id)
			if hidden(err) {
				continue // not in a category that the user needs
			}
			if err != nil {
				return err
			}
			used[id] = true
			attached[object.ObjectID.Reference()] = append(attached[object.ObjectID.Reference()], tag)
		}
	}
	maps.DeleteFunc(t.known, func(id string, _ tags.Tag) bool { return !used[id] })
	t.attached = attached
	t.read = started
	return nil
}

// readable returns the objects whose tags vCenter did not recently refuse. Objects other than VMs come first, because
// users are most likely to lack access to them. The caller holds the lock.
func (t *tagCache) readable(needed map[types.ManagedObjectReference]bool) []mo.Reference {
	maps.DeleteFunc(t.hidden, func(_ types.ManagedObjectReference, since time.Time) bool {
		return t.clock.Since(since) >= hiddenAge
	})
	var refs []types.ManagedObjectReference
	for ref := range needed {
		if _, hidden := t.hidden[ref]; !hidden {
			refs = append(refs, ref)
		}
	}
	isVM := func(ref types.ManagedObjectReference) bool { return ref.Type == "VirtualMachine" }
	slices.SortFunc(refs, func(a, b types.ManagedObjectReference) int {
		switch {
		case isVM(a) && !isVM(b):
			return 1
		case isVM(b) && !isVM(a):
			return -1
		}
		return strings.Compare(a.String(), b.String())
	})
	objects := make([]mo.Reference, len(refs))
	for i, ref := range refs {
		objects[i] = ref
	}
	return objects
}

// attachedTo lists the tags of objects. vCenter requires the right to read each object, and documents no partial
// responses. A refused request is split in halves, and a single refused object is left out. The caller holds the lock.
func (t *tagCache) attachedTo(
	ctx context.Context, manager *tags.Manager, objects []mo.Reference, refusals *int,
) ([]tags.AttachedTags, error) {
	if len(objects) == 0 {
		return nil, nil
	}
	found, err := manager.ListAttachedTagsOnObjects(ctx, objects)
	if !hidden(err) {
		return found, err
	}
	if *refusals++; *refusals > maxRefusals {
		return nil, err
	}
	if len(objects) == 1 {
		if t.hidden == nil {
			t.hidden = map[types.ManagedObjectReference]time.Time{}
		}
		t.hidden[objects[0].Reference()] = t.clock.Now()
		return nil, nil
	}
	middle := len(objects) / 2
	first, err := t.attachedTo(ctx, manager, objects[:middle], refusals)
	if err != nil {
		return nil, err
	}
	second, err := t.attachedTo(ctx, manager, objects[middle:], refusals)
	return append(first, second...), err
}

// tag returns a tag, and caches its category. The caller holds the lock.
func (t *tagCache) tag(ctx context.Context, manager *tags.Manager, id string) (tags.Tag, error) {
	if t.names == nil {
		t.names = map[string]string{}
		t.known = map[string]tags.Tag{}
	}
	tag, known := t.known[id]
	if !known {
		found, err := manager.GetTag(ctx, id)
		if err != nil {
			return tags.Tag{}, fmt.Errorf("reading tag %s: %w", id, err)
		}
		tag = *found
	}
	if t.names[tag.CategoryID] == "" {
		category, err := manager.GetCategory(ctx, tag.CategoryID)
		if err != nil {
			return tags.Tag{}, fmt.Errorf("reading category %s: %w", tag.CategoryID, err)
		}
		t.names[tag.CategoryID] = category.Name
	}
	t.known[id] = tag
	return tag, nil
}
