// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// An Upload is a transfer of files for a catalog item. It remains as long as the item, for downloads.
type Upload struct {
	ID       string
	Entity   Entity
	Task     string // ID of the task that waits for the files
	Files    []UploadFile
	Download bool // the files can be downloaded
}

// clone returns a deep copy.
func (u *Upload) clone() Upload {
	c := *u
	c.Files = append([]UploadFile{}, u.Files...)
	for i := range c.Files {
		c.Files[i].Content = Content(strings.Clone(string(c.Files[i].Content)))
	}
	return c
}

// An UploadFile is a file of a transfer.
type UploadFile struct {
	Name     string
	Size     int64 // -1 if it is not known in advance
	Received int64
	Content  Content // empty for files over 64 MiB, whose bytes are only counted
}

// Content is the content of a file.
type Content []byte

// MarshalText implements encoding.TextMarshaler. It encodes the content in base64.
func (c Content) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, c), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It decodes base64.
func (c *Content) UnmarshalText(text []byte) error {
	out, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("reading content: %w", err)
	}
	*c = out
	return nil
}
