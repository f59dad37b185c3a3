// SPDX-License-Identifier: Apache-2.0

// Package access authenticates and authorizes requests: sessions, logins and tokens, roles and rights, and the
// visibility of vApps and disks.
package access
