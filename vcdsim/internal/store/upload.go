// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// An Upload is a transfer of files for a catalog item. It stays while the item does, for downloads.
type Upload struct {
	ID       string
	Entity   Entity
	Task     string // that waits for the bytes
	Files    []UploadFile
	Download bool // whether the files can be read
}

// clone copies a transfer.
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
	Size     int64 // -1 is not known before it comes
	Received int64
	Content  Content // empty of files over 64 MiB, whose bytes are only counted
}

// Content are the bytes of a file.
type Content []byte

// MarshalText writes the bytes in base64.
func (c Content) MarshalText() ([]byte, error) {
	return base64.StdEncoding.AppendEncode(nil, c), nil
}

// UnmarshalText reads base64.
func (c *Content) UnmarshalText(text []byte) error {
	out, err := base64.StdEncoding.AppendDecode(nil, text)
	if err != nil {
		return fmt.Errorf("reading content: %w", err)
	}
	*c = out
	return nil
}
