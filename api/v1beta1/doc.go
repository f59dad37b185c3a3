// SPDX-License-Identifier: Apache-2.0

// Package v1beta1 is the API of CAPVCD 1.0, VMware's archived provider, which stored objects in it. 1.1 to 1.3.2 served it.
//
// The types have the fields, required fields and defaults of VMware's CRDs, so that existing manifests and clients go
// on working. The API server converts their objects to v1beta4, which is stored.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta1
