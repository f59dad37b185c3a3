// SPDX-License-Identifier: Apache-2.0

// Package documents stores objects of the JSON API that have no special behavior: collections of documents, and
// settings, of which each entity has one. Nouns define their collections and settings as values.
package documents
