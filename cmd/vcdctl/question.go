// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxAnswer is the maximum length of an answer, in bytes.
const maxAnswer = 1 << 10

// ask prints a question and returns the line that the user types. Ctrl-C ends the wait with an error.
func (p *program) ask(ctx context.Context, question string) (string, error) {
	fmt.Fprint(p.errors, question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() { // A read from a terminal cannot be canceled.
		text, err := bufio.NewReader(io.LimitReader(p.in, maxAnswer)).ReadString('\n')
		typed <- line{text: text, err: err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(p.errors)
		return "", errors.New("interrupted: nothing was changed")
	case answer := <-typed:
		if answer.err != nil && !errors.Is(answer.err, io.EOF) {
			return "", fmt.Errorf("reading the answer: %w", answer.err)
		}
		return strings.TrimSpace(answer.text), nil
	}
}
