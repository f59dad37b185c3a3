// SPDX-License-Identifier: Apache-2.0

// Package login makes calls with credentials: it logs in, by password, API token or the rotating token of a service
// account, replaces tokens before they end or when VCD has forgotten them, and tries refused credentials rarely. It does not
// know what calls are for.
package login
