// SPDX-License-Identifier: Apache-2.0

package conversion

import (
	"encoding/json"
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// dataAnnotation is the annotation in which Cluster API and its providers save data that a version cannot express.
const dataAnnotation = "cluster.x-k8s.io/conversion-data"

// A note is the content of the annotation: spec and status of the object in another version.
type note struct {
	APIVersion string          `json:"apiVersion"`
	Spec       json.RawMessage `json:"spec,omitempty"`
	Status     json.RawMessage `json:"status,omitempty"`
	// UID is the UID of the noted v1beta4 object. It detects a note that was copied to another object.
	UID types.UID `json:"uid,omitempty"`
	// CAPVCD is the note of the noted v1beta4 object, or nil if it had none.
	CAPVCD *note `json:"capvcd,omitempty"`
}

// noteOf returns a note with spec and status of an object in the given version.
func noteOf(version schema.GroupVersion, object any) (*note, error) {
	parts, err := treeOf(object)
	if err != nil {
		return nil, err
	}
	n := &note{}
	if err := recode(parts, n); err != nil {
		return nil, err
	}
	n.APIVersion = version.String()
	return n, nil
}

// takeNote removes the annotation of an object and returns its note. It returns nil if the annotation is missing or
// invalid. An invalid annotation must not prevent the conversion, because the object could then not be repaired.
func takeNote(object metav1.Object) *note {
	annotations := maps.Clone(object.GetAnnotations())
	text, has := annotations[dataAnnotation]
	if !has {
		return nil
	}
	delete(annotations, dataAnnotation)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	n := &note{}
	if json.Unmarshal([]byte(text), n) != nil {
		return nil
	}
	return n
}

// isOf reports whether a note belongs to an object.
func (n *note) isOf(o metav1.Object) bool { return n != nil && n.UID == o.GetUID() }

// decode sets spec and status of an object to those of a note. It reports whether the note has this version and is
// valid.
func (n *note) decode(version schema.GroupVersion, object any) bool {
	if n == nil || n.APIVersion != version.String() {
		return false
	}
	return recode(map[string]json.RawMessage{"spec": n.Spec, "status": n.Status}, object) == nil
}

// put sets the annotation of an object. It is a no-op for nil.
func (n *note) put(object metav1.Object) error {
	if n == nil {
		return nil
	}
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encoding annotation %s: %w", dataAnnotation, err)
	}
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[dataAnnotation] = string(text)
	object.SetAnnotations(annotations)
	return nil
}
