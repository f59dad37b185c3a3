// SPDX-License-Identifier: Apache-2.0

// Package orgs handles the requests for organizations, their settings and users, the audit trail, and the VDCs that
// administrators create. Packages vdcs and catalogs handle the content of an organization.
package orgs
