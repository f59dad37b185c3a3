// SPDX-License-Identifier: Apache-2.0

// Package config contains the kustomize files for a management cluster: CRDs, permissions, the manager, its webhooks
// and their certificate. Its tests check that the CRDs enforce the rules that they describe, and that the components
// meet the requirements of clusterctl.
package config
