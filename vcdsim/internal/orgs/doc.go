// SPDX-License-Identifier: Apache-2.0

// Package orgs answers for organizations, their users, and the VDCs that administrators make in them.
package orgs
