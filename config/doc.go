// SPDX-License-Identifier: Apache-2.0

// Package config holds what a management cluster gets: CRDs, rights, the manager, its webhooks and their certificate,
// as kustomize reads them. Its tests hold the CRDs against the rules they state and the whole against what clusterctl
// demands.
package config
