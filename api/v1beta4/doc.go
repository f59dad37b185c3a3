// Package v1beta4 is the API of the Cluster API Provider for VMware Cloud Director.
//
// It follows the Cluster API contract v1beta2. Every field of a spec is one of: immutable, mutable in place, or
// written by the controller; its comment says which. Words are those of VMware Cloud Director and of CAPVCD,
// VMware's archived provider, where they mean the same thing.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta4
