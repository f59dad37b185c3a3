// SPDX-License-Identifier: Apache-2.0

// Package access decides who the caller of a request is and what he may do: sessions, logins and tokens, roles and
// rights, and which vApps and disks are shown to whom.
package access
