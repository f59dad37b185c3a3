// SPDX-License-Identifier: Apache-2.0

// Package wire reads and writes documents of both of VCD's APIs: XML elements and JSON objects that keep what we do not
// know, and the XML documents that the SDK's types do not write as the schema wants. It makes no calls, and does not know
// why a document is sent.
package wire
