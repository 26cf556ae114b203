module profefe_agent

go 1.14
