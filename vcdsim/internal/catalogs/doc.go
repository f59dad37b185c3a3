// SPDX-License-Identifier: Apache-2.0

// Package catalogs handles the requests for catalogs and their items: vApp templates and media, with their uploads and
// copies. It does not know how templates become VMs, which package compute implements.
package catalogs
