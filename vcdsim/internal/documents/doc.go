// SPDX-License-Identifier: Apache-2.0

// Package documents keeps objects of the JSON API that have no behaviour of their own: collections of documents, and
// settings, of which an entity has one each. Nouns describe theirs as values.
package documents
