// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta3"
	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
)

// An object is one of the API.
type object interface {
	client.Object
	metav1.ObjectMetaAccessor
}

// A kind is how objects of one kind are converted between v1beta3, which every older version is a part of, and v1beta4.
type kind[Hub, Old object] struct {
	newHub func() Hub
	newOld func() Old
	// toHub and fromHub set those fields of the second object that have a home in the first.
	toHub   func(old Old, hub Hub)
	fromHub func(hub Hub, old Old)
	// settle removes what contradicts the rest of an object after toHub, and restores what must not change from the
	// object that was edited; that is empty for a new one.
	settle func(hub, former Hub)
	// credentials are where the objects have them; nil for kinds without.
	credentials *credentials[Hub, Old]
}

// upgrade sets metadata, spec and status of our object. old is what came in, with all that its version has; narrow
// reduces another object to that.
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

// applyEdits sets spec and status of hub to those of saved, with the edits between base and old.
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

// remember notes an object of CAPVCD on ours, unless our object and the note that it had give the same again.
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

// downgrade returns the form of CAPVCD of our object, which has a note or none.
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

// show returns the form of CAPVCD of our object, with our object in its annotation.
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
