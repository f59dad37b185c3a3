// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// An object is an API object.
type object interface {
	client.Object
	metav1.ObjectMetaAccessor
}

// A kind defines the conversion of a kind between v1beta3 and v1beta4. All older versions are subsets of v1beta3.
type kind[Hub, Old object] struct {
	newHub func() Hub
	newOld func() Old
	// toHub and fromHub set the fields of the second object that have an equivalent in the first.
	toHub   func(old Old, hub Hub)
	fromHub func(hub Hub, old Old)
	// settle removes fields that contradict others after toHub. It restores immutable fields from former, the object
	// before the edit. For a new object, former is empty.
	settle func(hub, former Hub)
	// credentials locates the credentials of the objects; nil for kinds without credentials.
	credentials *credentials[Hub, Old]
}

// upgrade sets metadata, spec and status of a v1beta4 object. old is the object in the request, converted to v1beta3
// with all fields of its version. narrow reduces another v1beta3 object to the fields of that version.
func (k *kind[Hub, Old]) upgrade(old Old, narrow func(Old) (Old, error), hub Hub) error {
	seen := takeNote(old)
	copyMeta(old, hub)
	saved := k.newHub()
	copyMeta(old, saved)
	if !seen.isOf(old) || !seen.decode(infrav1.GroupVersion, saved) {
		k.toHub(old, hub)
		k.settle(hub, k.newHub())
		return k.remember(old, hub, nil)
	}

	k.credentials.restore(old, saved)
	shown, err := k.downgrade(saved, seen.CAPVCD)
	if err != nil {
		return err
	}
	base, err := narrow(shown)
	if err != nil {
		return err
	}
	if err := k.applyEdits(base, old, saved, hub); err != nil {
		return err
	}
	complete := k.newOld()
	copyMeta(old, complete)
	if _, err := applyChanges(base, old, shown, complete); err != nil {
		return err
	}
	return k.remember(complete, hub, seen.CAPVCD)
}

// applyEdits sets spec and status of hub to those of saved, with the changes from base to old.
func (k *kind[Hub, Old]) applyEdits(base, old Old, saved, hub Hub) error {
	before := k.newHub()
	copyMeta(old, before)
	k.toHub(base, before)
	after := k.newHub()
	copyMeta(old, after)
	k.toHub(old, after)
	edited, err := applyChanges(before, after, saved, hub)
	if edited {
		k.settle(hub, saved)
	}
	return err
}

// remember saves a CAPVCD object in the annotation of a v1beta4 object. If downgrading with the previous note already
// returns the same object, it keeps that note.
func (k *kind[Hub, Old]) remember(old Old, hub Hub, had *note) error {
	again, err := k.downgrade(hub, had)
	if err != nil {
		return err
	}
	public := k.newOld()
	copyMeta(old, public)
	if err := recode(old, public); err != nil {
		return err
	}
	k.credentials.hide(public, again)
	same, err := equal(public, again)
	if err != nil {
		return err
	}
	if same {
		return had.put(hub)
	}
	noted, err := noteOf(v1beta3.GroupVersion, public)
	if err != nil {
		return err
	}
	return noted.put(hub)
}

// downgrade converts a v1beta4 object to v1beta3. had is the object's note; it may be nil.
func (k *kind[Hub, Old]) downgrade(hub Hub, had *note) (Old, error) {
	now := k.newOld()
	copyMeta(hub, now)
	k.fromHub(hub, now)
	saved := k.newOld()
	copyMeta(hub, saved)
	if !had.decode(v1beta3.GroupVersion, saved) {
		return now, nil
	}

	k.credentials.keep(now, saved)
	then := k.newHub()
	copyMeta(hub, then)
	k.toHub(saved, then)
	k.settle(then, k.newHub())
	base := k.newOld()
	copyMeta(hub, base)
	k.fromHub(then, base)
	old := k.newOld()
	copyMeta(hub, old)
	_, err := applyChanges(base, now, saved, old)
	return old, err
}

// show converts a v1beta4 object to v1beta3, and saves the v1beta4 object in the annotation.
func (k *kind[Hub, Old]) show(hub Hub) (Old, error) {
	bare := k.newHub()
	if err := recode(hub, bare); err != nil {
		return k.newOld(), err
	}
	had := takeNote(bare)
	old, err := k.downgrade(bare, had)
	if err != nil {
		return old, err
	}
	k.credentials.strip(bare)
	noted, err := noteOf(infrav1.GroupVersion, bare)
	if err != nil {
		return old, err
	}
	noted.UID = bare.GetUID()
	noted.CAPVCD = had
	return old, noted.put(old)
}

// copyMeta copies the metadata of an object.
func copyMeta(from, to metav1.ObjectMetaAccessor) {
	source, isSource := from.GetObjectMeta().(*metav1.ObjectMeta)
	target, isTarget := to.GetObjectMeta().(*metav1.ObjectMeta)
	if isSource && isTarget {
		source.DeepCopyInto(target)
	}
}
