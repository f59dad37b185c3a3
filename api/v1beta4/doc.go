// SPDX-License-Identifier: Apache-2.0

// Package v1beta4 is the API of the Cluster API Provider for VMware Cloud Director.
//
// It follows the Cluster API contract v1beta2. Every field of a spec is one of: immutable, mutable in place, or
// written by the controller; its comment says which. Words are those of VMware Cloud Director and of CAPVCD,
// VMware's archived provider, where they mean the same thing.
//
// A field that is the name or URN of an object in VCD is plain text. Text of the form urn:vcloud:<type>:<UUID> is a
// URN, which survives a renaming in VCD; everything else is a name, which is looked up. What begins with urn:vcloud:
// and is no URN of the field's type is refused, so a URN cannot be mistaken for a name.
//
// Rules that compare a value with its former one are on the field spec of an object, not at the type of the spec:
// templates share that type, and there the topology controller's dry runs must pass.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta4
