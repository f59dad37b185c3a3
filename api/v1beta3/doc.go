// SPDX-License-Identifier: Apache-2.0

// Package v1beta3 is the API of the main branch of CAPVCD, VMware's archived provider. No release of CAPVCD has it.
//
// The types have the fields, required fields and defaults of VMware's CRDs, so that existing manifests and clients go
// on working. The API server converts their objects to v1beta4, which is stored.
//
// +kubebuilder:object:generate=true
// +groupName=infrastructure.cluster.x-k8s.io
package v1beta3
