// SPDX-License-Identifier: Apache-2.0

// Package documents stores objects of the JSON API that have no special behavior: collections of documents, and
// settings. Each entity has one instance of a setting. Nouns define their collections and settings as values.
package documents
