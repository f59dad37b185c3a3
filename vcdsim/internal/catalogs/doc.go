// SPDX-License-Identifier: Apache-2.0

// Package catalogs answers for catalogs and what is in them: vApp templates, media, their uploads and copies.
package catalogs
