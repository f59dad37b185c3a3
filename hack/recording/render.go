// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// trailing matches the spaces that pad lines to the width of the terminal.
var trailing = regexp.MustCompile(` +</text>`)

// render renders events as a picture.
func render(ctx context.Context, events []event, out string) error {
	folder, err := os.MkdirTemp("", "recording")
	if err != nil {
		return fmt.Errorf("making a folder for the picture: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	cast := filepath.Join(folder, "short.cast")
	raw := filepath.Join(folder, "raw.svg")
	if err := write(cast, events); err != nil {
		return err
	}
	// Add a column, because some fonts are slightly wider than termsvg assumes.
	command := exec.CommandContext(ctx, "go", "tool", "termsvg", "export", cast, "--output", raw, "--no-cursor",
		"--minify", "--cols", strconv.Itoa(columns+1))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("rendering the recording: %w: %s", err, output)
	}
	picture, err := os.ReadFile(raw)
	if err != nil {
		return fmt.Errorf("reading the picture: %w", err)
	}
	if err := os.WriteFile(out, []byte(tidy(string(picture))), 0o600); err != nil {
		return fmt.Errorf("writing the picture: %w", err)
	}
	return nil
}

// tidy removes repeated attributes and padding, and starts a new line for each frame.
func tidy(picture string) string {
	picture = strings.NewReplacer(` xml:space="preserve"`, "", "<g transform", "\n<g transform").Replace(picture)
	return trailing.ReplaceAllString(picture, "</text>") + "\n"
}
