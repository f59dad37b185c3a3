// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package process

import "syscall"

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
